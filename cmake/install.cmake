# What a package consists of: find_package(flashmhc) and pkg-config.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
install(TARGETS flashmhc flashmhc_headers EXPORT flashmhc-targets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/flashmhc DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT flashmhc-targets NAMESPACE flashmhc:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/flashmhc
  FILE flashmhc-config.cmake)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/flashmhc-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/flashmhc-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/flashmhc)
configure_file(${PROJECT_SOURCE_DIR}/cmake/flashmhc.pc.in ${PROJECT_BINARY_DIR}/flashmhc.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/flashmhc.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(TARGET flashmhc_cli)
  install(TARGETS flashmhc_cli)
endif()
