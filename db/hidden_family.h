#pragma once

#include <string>

namespace nacre {

/// The column family in which a database keeps its prepared transactions, if there ever were any
/// (transactions/prepared_store.h). It need not be named when the database is opened, and is not
/// listed.
inline const std::string kPreparedFamilyName = "nacre.prepared_transactions";

}  // namespace nacre
