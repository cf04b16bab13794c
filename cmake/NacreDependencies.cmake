# Packages, all from the distribution; docs/dependencies.md says what each is for.
# The first part is also run by nacreConfig.cmake for applications.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(Protobuf REQUIRED)
pkg_check_modules(nacre_crypto REQUIRED IMPORTED_TARGET GLOBAL libssl libcrypto)
pkg_check_modules(nacre_isal REQUIRED IMPORTED_TARGET GLOBAL libisal)
pkg_check_modules(nacre_lz4 REQUIRED IMPORTED_TARGET GLOBAL liblz4)
pkg_check_modules(nacre_verbs REQUIRED IMPORTED_TARGET GLOBAL libibverbs librdmacm)
pkg_check_modules(nacre_xxhash REQUIRED IMPORTED_TARGET GLOBAL libxxhash)
pkg_check_modules(nacre_prometheus REQUIRED IMPORTED_TARGET GLOBAL prometheus-cpp-pull)
pkg_check_modules(nacre_spdlog REQUIRED IMPORTED_TARGET GLOBAL spdlog)

if(NACRE_BUILD_ETCD)
  pkg_check_modules(nacre_grpc REQUIRED IMPORTED_TARGET GLOBAL grpc++)
  find_program(NACRE_GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
endif()
if(NACRE_BUILD_TOOLS OR NACRE_BUILD_TESTS)
  # Engines to compare with, in db_bench and in microbenchmarks.
  pkg_check_modules(nacre_rocksdb REQUIRED IMPORTED_TARGET GLOBAL rocksdb)
  find_library(NACRE_LEVELDB_LIBRARY leveldb REQUIRED)
endif()
if(NACRE_PEER_ROCKSDB)
  add_library(nacre_peer_rocksdb STATIC IMPORTED GLOBAL)
  set_target_properties(nacre_peer_rocksdb PROPERTIES
    IMPORTED_LOCATION ${NACRE_PEER_ROCKSDB}/librocksdb.a
    INTERFACE_INCLUDE_DIRECTORIES ${NACRE_PEER_ROCKSDB}/include)
  target_link_libraries(nacre_peer_rocksdb INTERFACE
    PkgConfig::nacre_lz4 Threads::Threads ${CMAKE_DL_LIBS})
endif()
if(NACRE_BUILD_TOOLS)
  pkg_check_modules(nacre_gflags REQUIRED IMPORTED_TARGET GLOBAL gflags)
  pkg_check_modules(nacre_httplib REQUIRED IMPORTED_TARGET GLOBAL cpp-httplib)
  pkg_check_modules(nacre_luajit REQUIRED IMPORTED_TARGET GLOBAL luajit)
  pkg_check_modules(nacre_lmdb REQUIRED IMPORTED_TARGET GLOBAL lmdb)
  pkg_check_modules(nacre_jemalloc REQUIRED IMPORTED_TARGET GLOBAL jemalloc)
  # Its header for the extension, the library for the tests that load that.
  pkg_check_modules(nacre_sqlite3 REQUIRED IMPORTED_TARGET GLOBAL sqlite3)
endif()
if(NACRE_BUILD_TESTS)
  find_package(GTest REQUIRED)
  find_package(benchmark REQUIRED)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
endif()
