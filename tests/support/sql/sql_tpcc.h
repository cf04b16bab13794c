#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "tests/support/sql/sql_connection.h"

namespace nacre {

/// A small TPC-C: its nine tables, its five transactions in the mix of clause 5.2.3, its conditions
/// of consistency. Money is in cents; what the transactions neither read nor change is left out.
///
/// One client is one connection; clients of Nacre in one process share the tables of a pool.
/// Thread safety: none; a thread for each client.
class TpccClient {
 public:
  struct Scale {
    int warehouses = 2;
    int customers = 30;  ///< Customers of a district, of which a warehouse has ten.
    int items = 100;
    std::string options{};  ///< Options of the tables, with the pool: "name='value', ".
  };

  /// `pool`: of the tables, for kNacre; empty if `scale` has it. They are created, or found if
  /// another client has done so.
  TpccClient(SqlTables tables, const std::string& pool, const Scale& scale, uint64_t seed);
  ~TpccClient();
  TpccClient(const TpccClient&) = delete;
  TpccClient& operator=(const TpccClient&) = delete;

  /// Fills the tables.
  void Load();
  /// One transaction, again and again until it meets no conflict. False, with a failed test, if
  /// something else goes wrong.
  bool RunOne();
  /// Fails the test for each condition that does not hold.
  void CheckConsistency();

  int64_t conflicts() const { return conflicts_; }
  int64_t new_orders() const { return new_orders_; }
  SqlConnection& connection() { return connection_; }

 private:
  using Argument = std::variant<int64_t, std::string>;
  using Rows = std::vector<std::vector<int64_t>>;

  int Pick(int count) { return static_cast<int>(random_() % static_cast<uint64_t>(count)); }
  /// False on any failure, which `code_` then tells.
  bool Execute(const std::string& sql, const std::vector<Argument>& arguments,
               Rows* rows = nullptr);
  bool NewOrder();
  bool OrderLine(int64_t warehouse, int64_t district, int64_t order, int64_t number);
  bool Payment();
  bool OrderStatus();
  bool Delivery();
  bool DeliverDistrict(int64_t warehouse, int64_t district);
  bool StockLevel();
  /// By number or, in six of ten cases, the middle one of those with a name.
  bool FindCustomer(int64_t warehouse, int64_t district, int64_t* customer);
  void ExpectNothing(const std::string& condition, const std::string& sql);

  const Scale scale_;
  std::mt19937_64 random_;
  SqlConnection connection_;
  std::map<std::string, sqlite3_stmt*> statements_;
  int code_ = SQLITE_OK;
  bool give_up_ = false;  ///< Gives a new order up: an item is not there (clause 2.4.1.4).
  int64_t conflicts_ = 0;
  int64_t new_orders_ = 0;
  int64_t clock_ = 0;
};

}  // namespace nacre
