# find_package(nacre) then target_link_libraries(app PRIVATE nacre::nacre), and
# nacre::archive for nacre/archive.h. nacre::etcd is there too if it was installed, and gRPC is.

set(NACRE_BUILD_TOOLS OFF)
set(NACRE_BUILD_TESTS OFF)
set(NACRE_BUILD_ETCD OFF)
include(${CMAKE_CURRENT_LIST_DIR}/NacreDependencies.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/nacreTargets.cmake)
if(NOT TARGET nacre::nacre)
  add_library(nacre::nacre ALIAS nacre::nacre_sharding)
  add_library(nacre::archive ALIAS nacre::nacre_archive)
endif()
if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/nacreEtcdTargets.cmake AND NOT TARGET nacre::etcd)
  pkg_check_modules(nacre_grpc QUIET IMPORTED_TARGET GLOBAL grpc++)
  if(nacre_grpc_FOUND)
    include(${CMAKE_CURRENT_LIST_DIR}/nacreEtcdTargets.cmake)
    add_library(nacre::etcd ALIAS nacre::nacre_etcd)
  endif()
endif()
