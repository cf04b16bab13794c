#pragma once

#include <memory>

#include "db/database_parts.h"
#include "db/metrics/database_endpoint.h"
#include "metrics/endpoint.h"
#include "metrics/page.h"

namespace nacre {

/// Shows what an open database does, has and lacks, as long as this lives: its parts outlive it.
///
/// A page takes the database's mutex for some copies of pointers, asks no node, and walks over the
/// tables, as the report does that nodes get once a second.
class OwnerMetrics final : public metrics::Source {
 public:
  OwnerMetrics(DatabaseParts* parts, std::unique_ptr<metrics::Endpoint> endpoint);

  void Collect(metrics::Page* page) const override;

 private:
  void CollectFamilies(metrics::Page* page) const;
  void CollectTables(metrics::Page* page) const;
  void CollectWork(metrics::Page* page) const;
  void CollectSpace(metrics::Page* page) const;
  void CollectRepair(metrics::Page* page) const;

  DatabaseParts* const parts_;
  const DatabaseLabels labels_;
  const std::unique_ptr<metrics::Endpoint> endpoint_;  ///< The first member to go.
};

}  // namespace nacre
