# Goal: what README.md tells an application to do works: install, find_package(nacre), its C++.
# Method: installs this build into an empty prefix, makes a project of README's C++ block and the
# two lines of its CMake block, builds it against the prefix alone, and runs it. If nacre::etcd was
# built, it does so with a program that links that, too.
#
# cmake -D SOURCE_DIR=... -D BUILD_DIR=... -D WORK_DIR=... -D COMPILER=... -D ETCD=ON|OFF
#       -P install_test.cmake

function(must)
  execute_process(COMMAND ${ARGN}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nanswered ${result}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
must(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix)

file(READ ${SOURCE_DIR}/README.md readme)
if(NOT readme MATCHES "```cpp\n([^`]*)```")
  message(FATAL_ERROR "README.md has no C++ block")
endif()
file(WRITE ${WORK_DIR}/app/app.cc "${CMAKE_MATCH_1}")
set(find_line "find_package\\(nacre[^\n]*")
set(link_line "target_link_libraries\\(app[^\n]*")
if(NOT readme MATCHES "\n```cmake\n(${find_line})\n(${link_line})\n")
  message(FATAL_ERROR "README.md does not show find_package(nacre)")
endif()
file(WRITE ${WORK_DIR}/app/CMakeLists.txt
  "cmake_minimum_required(VERSION 3.25)\nproject(app CXX)\n"
  "${CMAKE_MATCH_1}\nadd_executable(app app.cc)\n${CMAKE_MATCH_2}\n")
if(ETCD)
  file(WRITE ${WORK_DIR}/app/use_etcd.cc
    "#include \"nacre/utilities/etcd.h\"\nint main() { nacre::UseEtcd(); }\n")
  file(APPEND ${WORK_DIR}/app/CMakeLists.txt
    "add_executable(use_etcd use_etcd.cc)\ntarget_link_libraries(use_etcd PRIVATE nacre::etcd)\n")
endif()

must(${CMAKE_COMMAND} -S ${WORK_DIR}/app -B ${WORK_DIR}/build -G Ninja
     -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_PREFIX_PATH=${WORK_DIR}/prefix)
must(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
must(${WORK_DIR}/build/app)
if(NOT output STREQUAL "OK value\n")
  message(FATAL_ERROR "the application printed: ${output}")
endif()
if(ETCD)
  must(${WORK_DIR}/build/use_etcd)
endif()
file(REMOVE_RECURSE ${WORK_DIR})
