#pragma once

#include <memory>
#include <string>

#include "db/context/slow_operations.h"
#include "nacre/iterator.h"

namespace nacre {

/// An iterator whose moves are watched (db/context/slow_operations.h). `family`: the name of the
/// column family.
std::unique_ptr<Iterator> NewWatchedIterator(std::unique_ptr<Iterator> iterator,
                                             SlowOperations* operations, std::string family);

}  // namespace nacre
