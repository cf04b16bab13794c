# find_package(nacre) then target_link_libraries(app PRIVATE nacre::nacre).

set(NACRE_BUILD_TOOLS OFF)
set(NACRE_BUILD_TESTS OFF)
include(${CMAKE_CURRENT_LIST_DIR}/NacreDependencies.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/nacreTargets.cmake)
if(NOT TARGET nacre::nacre)
  add_library(nacre::nacre ALIAS nacre::nacre_sharding)
endif()
