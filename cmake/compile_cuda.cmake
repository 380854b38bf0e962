# Runs nvcc on one file and keeps the assembler's report (registers, spills) of every kernel in a file.
set(include_flags "")
foreach(include ${INCLUDES})
  list(APPEND include_flags -I${include})
endforeach()
execute_process(
  COMMAND ${NVCC} -std=c++20 -O3 -ccbin ${HOST} ${GENCODE} -Xptxas=-v --threads 2
    -Xcompiler=-fPIC,-fvisibility=hidden,-Wall,-Wextra ${include_flags}
    -MD -MF ${OBJECT}.d -MT ${OBJECT} -c ${SOURCE} -o ${OBJECT}
  ERROR_VARIABLE report OUTPUT_VARIABLE output RESULT_VARIABLE status)
file(WRITE ${REPORT} "${report}")
string(REGEX MATCHALL "[^\n]*(warning|error)[^\n]*\n?" problems "${report}")
if(status OR problems)
  message("${output}${report}")
endif()
if(status)
  message(FATAL_ERROR "nvcc failed on ${SOURCE}")
endif()
