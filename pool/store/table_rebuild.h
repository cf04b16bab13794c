#pragma once

#include <cstdint>
#include <vector>

#include "table/format/placement.h"

namespace nacre::pool {

/// A fragment that is to be had anew.
struct FragmentRebuild {
  int fragment = 0;
  ExtentAddr to;  ///< As long as the fragment, with what belongs to it.
};

/// Fragments of one table that are lost, damaged, or to leave the node they lie on.
struct TableRebuild {
  uint64_t table_id = 0;
  uint64_t table_bytes = 0;
  Placement placement;  ///< As it was.
  std::vector<FragmentRebuild> fragments;
};

/// What rebuilding tables took.
struct RebuildWork {
  uint64_t bytes_read = 0;     ///< From other nodes.
  uint64_t bytes_written = 0;  ///< To the new fragments.
};

}  // namespace nacre::pool
