# nacre/version.h, and who knows the commit. Programs, adapters and what is installed do: each build
# asks git, and writes and compiles one small source if the answer is another one. Tests do not,
# since all of them would be linked anew: the library takes that function from
# nacre_no_build_version unless a program brings it along, as an object.

set(nacre_generated ${PROJECT_BINARY_DIR}/generated)
configure_file(${PROJECT_SOURCE_DIR}/include/nacre/version.h.in ${nacre_generated}/nacre/version.h
               @ONLY)

string(TOLOWER "${CMAKE_BUILD_TYPE}" nacre_build_kind)
if(NACRE_SANITIZE)
  string(APPEND nacre_build_kind ", ${NACRE_SANITIZE}")
endif()
add_custom_target(nacre_find_commit
  COMMAND ${CMAKE_COMMAND}
    -D SOURCE_DIR=${PROJECT_SOURCE_DIR}
    -D OUTPUT=${nacre_generated}/build_version.cc
    -D NACRE_BUILD_KIND=${nacre_build_kind}
    -P ${PROJECT_SOURCE_DIR}/cmake/NacreFindCommit.cmake
  BYPRODUCTS ${nacre_generated}/build_version.cc
  COMMENT "" VERBATIM)
set(NACRE_COMMIT unknown)
set(NACRE_BUILD_KIND ${nacre_build_kind})
configure_file(${PROJECT_SOURCE_DIR}/cmake/build_version.cc.in
               ${nacre_generated}/no_build_version.cc @ONLY)

add_library(nacre_build_version_object OBJECT ${nacre_generated}/build_version.cc)
add_dependencies(nacre_build_version_object nacre_find_commit)
add_library(nacre_build_version STATIC $<TARGET_OBJECTS:nacre_build_version_object>)
add_library(nacre_no_build_version STATIC ${nacre_generated}/no_build_version.cc)
foreach(target nacre_build_version_object nacre_build_version nacre_no_build_version)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
endforeach()

# nacre_know_version(LIBRARY): LIBRARY, where GetNacreVersionAsString is, finds the commit.
function(nacre_know_version library)
  target_include_directories(${library} SYSTEM PUBLIC $<BUILD_INTERFACE:${nacre_generated}>)
  # What includes this project has no tests that matter here.
  set(within_build nacre_build_version)
  if(PROJECT_IS_TOP_LEVEL)
    set(within_build nacre_no_build_version)
  endif()
  target_link_libraries(${library} PUBLIC
    $<BUILD_INTERFACE:${within_build}> $<INSTALL_INTERFACE:nacre::nacre_build_version>)
endfunction()
