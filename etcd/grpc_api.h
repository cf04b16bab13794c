#pragma once

// gRPC and the stubs of etcd's API. Abseil, which comes with them, has macros for Clang's analysis
// with names of ours and the same meaning, so this is included before ours, and theirs end here.
#ifdef NACRE_THREAD_ATTRIBUTE
#error "include etcd/grpc_api.h before util/thread_annotations.h"
#endif

#include <grpcpp/grpcpp.h>

#include "etcd/etcd_api.grpc.pb.h"

#undef GUARDED_BY
#undef PT_GUARDED_BY
#undef ACQUIRED_BEFORE
#undef ACQUIRED_AFTER
#undef NO_THREAD_SAFETY_ANALYSIS
