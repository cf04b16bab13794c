#pragma once

#include <map>
#include <string>
#include <vector>

#include "rdma/diagnosis.h"

namespace nacre::rdma {

/// The part of Diagnose that is about RDMA devices.
void DiagnoseVerbs(const std::map<std::string, std::string>& parameters,
                   const std::vector<std::string>& peers, std::vector<Finding>* findings);

}  // namespace nacre::rdma
