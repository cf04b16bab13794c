#include <algorithm>
#include <memory>

#include "adapters/c/c_error.h"
#include "adapters/c/c_types.h"
#include "adapters/common/c_memory.h"
#include "nacre/c_callbacks.h"

nacre_statistics_t* nacre_statistics_create(void) {
  return std::make_unique<nacre_statistics_t>(nacre_statistics_t{nacre::CreateDBStatistics()})
      .release();
}

void nacre_statistics_destroy(nacre_statistics_t* statistics) {
  std::unique_ptr<nacre_statistics_t> destroyed(statistics);
}

char* nacre_statistics_get_string(const nacre_statistics_t* statistics) {
  return nacre::CopyToCString(statistics->rep->ToString());
}

int nacre_statistics_get_ticker(const nacre_statistics_t* statistics, const char* name,
                                uint64_t* count) {
  const auto found = std::ranges::find_if(
      nacre::TickersNameMap, [name](const auto& ticker) { return ticker.second == name; });
  if (found == nacre::TickersNameMap.end()) return -1;
  *count = statistics->rep->getTickerCount(found->first);
  return 0;
}

void nacre_statistics_reset(nacre_statistics_t* statistics, char** errptr) {
  (void)nacre::Succeeded(statistics->rep->Reset(), errptr);
}
