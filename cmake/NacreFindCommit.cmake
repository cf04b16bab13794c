# Writes the source OUTPUT, if its content is to be another one: it says of which commit SOURCE_DIR
# is, and that the build is a NACRE_BUILD_KIND.

set(NACRE_COMMIT unknown)
if(EXISTS ${SOURCE_DIR}/.git)
  # Without a lock, which would be in the way of other commands of git.
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env GIT_OPTIONAL_LOCKS=0
      git -C ${SOURCE_DIR} describe --always --abbrev=10 --dirty --exclude=*
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(result EQUAL 0)
    set(NACRE_COMMIT ${output})
  endif()
else()
  file(READ ${SOURCE_DIR}/cmake/archive_commit.txt archived)  # An archive made by git knows it.
  if(archived MATCHES "^[0-9a-f]+")
    string(SUBSTRING ${CMAKE_MATCH_0} 0 10 NACRE_COMMIT)
  endif()
endif()
configure_file(${SOURCE_DIR}/cmake/build_version.cc.in ${OUTPUT} @ONLY)
