# The CUDA toolchain: nvcc as a plain program. Each device file is compiled by a rule of its own with its own list
# of architectures, and the assembler's resource report is kept beside the object for tools/check_spills.py.
find_program(FMHC_NVCC nvcc HINTS /usr/local/cuda/bin $ENV{CUDA_HOME}/bin REQUIRED)
get_filename_component(FMHC_CUDA_ROOT ${FMHC_NVCC} REALPATH)
get_filename_component(FMHC_CUDA_ROOT ${FMHC_CUDA_ROOT}/../.. ABSOLUTE)
find_library(FMHC_CUDART_STATIC cudart_static HINTS ${FMHC_CUDA_ROOT}/lib64 ${FMHC_CUDA_ROOT}/lib
  ${FMHC_CUDA_ROOT}/targets/x86_64-linux/lib REQUIRED)
find_path(FMHC_CUDA_INCLUDE cuda_runtime_api.h HINTS ${FMHC_CUDA_ROOT}/include REQUIRED)
execute_process(COMMAND ${FMHC_NVCC} --version OUTPUT_VARIABLE nvcc_version COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCH "release ([0-9]+\\.[0-9]+)" nvcc_version "${nvcc_version}")
set(FMHC_CUDA_VERSION ${CMAKE_MATCH_1})

# compute_80 serves every card since Ampere; compute_90 adds programmatic dependent launch. PTX of both is kept, so
# that cards to come can run.
if(FMHC_CUDA_ARCHS STREQUAL "default")
  set(FMHC_GENCODE
    "-gencode=arch=compute_80,code=[sm_80,compute_80]" "-gencode=arch=compute_80,code=sm_89"
    "-gencode=arch=compute_90,code=[sm_90,compute_90]"
    "-gencode=arch=compute_100,code=sm_100" "-gencode=arch=compute_120,code=sm_120")
  set(FMHC_CUDA_ARCH_TEXT "80 89 90 100 120")
else()
  set(FMHC_GENCODE "")
  foreach(arch ${FMHC_CUDA_ARCHS})
    list(APPEND FMHC_GENCODE -gencode=arch=compute_${arch},code=sm_${arch})
  endforeach()
  string(REPLACE ";" " " FMHC_CUDA_ARCH_TEXT "${FMHC_CUDA_ARCHS}")
endif()
# CUDA 13 runtimes load on drivers of the 580 series and later.
set(FMHC_CUDA_SUMMARY
  "CUDA ${FMHC_CUDA_VERSION} for sm ${FMHC_CUDA_ARCH_TEXT}, needs an NVIDIA driver of series 580 or later"
  CACHE INTERNAL "")
find_package(Threads REQUIRED)
set(FMHC_PRIVATE_LIBRARIES ${FMHC_CUDART_STATIC} Threads::Threads ${CMAKE_DL_LIBS} rt)

# Compiles one device file and appends its object to `out`. A name that ends in _sm90 leaves out older architectures;
# where none is left, PTX for sm_90 keeps the link whole.
function(fmhc_compile_cuda source out)
  get_filename_component(name ${source} NAME_WE)
  set(gencode ${FMHC_GENCODE})
  if(name MATCHES "_sm90$")
    list(FILTER gencode INCLUDE REGEX "compute_(9|1[0-9])")
    if(NOT gencode)
      set(gencode "-gencode=arch=compute_90,code=compute_90")
    endif()
  endif()
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.cu.o)
  set(report ${CMAKE_CURRENT_BINARY_DIR}/${name}.ptxas)
  add_custom_command(OUTPUT ${object} ${report}
    COMMAND ${CMAKE_COMMAND} -DNVCC=${FMHC_NVCC} -DHOST=${CMAKE_CXX_COMPILER} -DSOURCE=${source} -DOBJECT=${object}
      -DREPORT=${report} "-DGENCODE=${gencode}"
      "-DINCLUDES=${PROJECT_SOURCE_DIR}/src;${PROJECT_SOURCE_DIR}/include"
      -P ${PROJECT_SOURCE_DIR}/cmake/compile_cuda.cmake
    DEPENDS ${source} ${PROJECT_SOURCE_DIR}/cmake/compile_cuda.cmake
    DEPFILE ${object}.d VERBATIM COMMENT "Building CUDA object ${name}")
  set(${out} ${${out}} ${object} PARENT_SCOPE)
endfunction()
