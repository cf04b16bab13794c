// counters_plugin.so: what memory nodes need to flush and compact tables of counters.
//
//     nacre-memnode --listen=tcp:127.0.0.1:7001 --size=1GiB --plugin=./counters_plugin.so

#include <memory>

#include "examples/counters/counters.h"
#include "nacre/plugin.h"

namespace {

nacre::Status AddCounters(nacre::PluginRegistrar* registrar) {
  static const counters::ByNumber by_number;
  NACRE_RETURN_IF_ERROR(registrar->AddComparator(&by_number));
  NACRE_RETURN_IF_ERROR(registrar->AddMergeOperator(std::make_shared<counters::Add>()));
  return registrar->AddCompactionFilter(std::make_shared<counters::ForgetZerosFactory>());
}

}  // namespace

NACRE_PLUGIN(AddCounters)
