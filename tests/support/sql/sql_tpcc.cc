#include "tests/support/sql/sql_tpcc.h"

#include <gtest/gtest.h>

namespace nacre {
namespace {

constexpr int kDistricts = 10;

const SqlTableText kTpccTables[] = {
    {"warehouse", "w_id INTEGER PRIMARY KEY, w_tax INT, w_ytd INT", nullptr},
    {"district",
     "d_w_id INT, d_id INT, d_tax INT, d_ytd INT, d_next_o_id INT, PRIMARY KEY(d_w_id, d_id)",
     nullptr},
    {"customer",
     "c_w_id INT, c_d_id INT, c_id INT, c_last TEXT, c_first TEXT, c_balance INT, "
     "c_payments INT, c_deliveries INT, PRIMARY KEY(c_w_id, c_d_id, c_id)",
     "c_w_id, c_d_id, c_last, c_first"},
    {"history", "h_id INTEGER PRIMARY KEY, h_w_id INT, h_d_id INT, h_c_id INT, h_amount INT",
     nullptr},
    {"orders",
     "o_w_id INT, o_d_id INT, o_id INT, o_c_id INT, o_entry INT, o_carrier INT, o_ol_cnt INT, "
     "PRIMARY KEY(o_w_id, o_d_id, o_id)",
     "o_w_id, o_d_id, o_c_id, o_id"},
    {"new_order", "no_w_id INT, no_d_id INT, no_o_id INT, PRIMARY KEY(no_w_id, no_d_id, no_o_id)",
     nullptr},
    {"order_line",
     "ol_w_id INT, ol_d_id INT, ol_o_id INT, ol_number INT, ol_i_id INT, ol_delivery INT, "
     "ol_quantity INT, ol_amount INT, PRIMARY KEY(ol_w_id, ol_d_id, ol_o_id, ol_number)",
     nullptr},
    {"item", "i_id INTEGER PRIMARY KEY, i_name TEXT, i_price INT", nullptr},
    {"stock",
     "s_w_id INT, s_i_id INT, s_quantity INT, s_ytd INT, s_orders INT, "
     "PRIMARY KEY(s_w_id, s_i_id)",
     nullptr},
};

std::string LastName(int number) { return "NAME" + std::to_string(number % 10); }

void CreateTables(SqlTables tables, const std::string& options, SqlConnection* connection) {
  for (const SqlTableText& table : kTpccTables) {
    const std::string name = table.name;
    if (tables == SqlTables::kNacre) {
      const std::string index =
          table.index == nullptr ? "" : std::string(", INDEX(") + table.index + ")";
      connection->Query("CREATE VIRTUAL TABLE " + name + " USING nacre(" + options + table.columns +
                        index + ")");
      continue;
    }
    const bool has_rowid = std::string(table.columns).find("INTEGER") != std::string::npos;
    connection->Query("CREATE TABLE " + name + "(" + table.columns + ")" +
                      (has_rowid ? "" : " WITHOUT ROWID"));
    if (table.index == nullptr) continue;
    connection->Query("CREATE INDEX " + name + "_by ON " + name + "(" + table.index + ")");
  }
}

}  // namespace

TpccClient::TpccClient(SqlTables tables, const std::string& pool, const Scale& scale, uint64_t seed)
    : scale_(scale), random_(seed), connection_(tables) {
  CreateTables(tables, (pool.empty() ? "" : "pool='" + pool + "', ") + scale.options, &connection_);
}

TpccClient::~TpccClient() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
}

bool TpccClient::Execute(const std::string& sql, const std::vector<Argument>& arguments,
                         Rows* rows) {
  sqlite3_stmt*& statement = statements_[sql];
  if (statement == nullptr) {
    code_ = sqlite3_prepare_v3(connection_.get(), sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT,
                               &statement, nullptr);
    if (code_ != SQLITE_OK) return false;
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const int place = static_cast<int>(i) + 1;
    if (const int64_t* number = std::get_if<int64_t>(&arguments[i])) {
      sqlite3_bind_int64(statement, place, *number);
    } else {
      sqlite3_bind_text(statement, place, std::get<std::string>(arguments[i]).c_str(), -1,
                        SQLITE_TRANSIENT);
    }
  }
  while ((code_ = sqlite3_step(statement)) == SQLITE_ROW) {
    if (rows == nullptr) continue;
    rows->emplace_back();
    for (int i = 0; i < sqlite3_column_count(statement); ++i) {
      rows->back().push_back(sqlite3_column_int64(statement, i));
    }
  }
  sqlite3_reset(statement);
  return code_ == SQLITE_DONE;
}

void TpccClient::Load() {
  connection_.Query("BEGIN");
  for (int64_t item = 1; item <= scale_.items; ++item) {
    Execute("INSERT INTO item VALUES(?, ?, ?)", {item, "item " + std::to_string(item), item * 10});
  }
  for (int64_t w = 1; w <= scale_.warehouses; ++w) {
    Execute("INSERT INTO warehouse VALUES(?, ?, 0)", {w, int64_t{Pick(20)}});
    for (int64_t item = 1; item <= scale_.items; ++item) {
      Execute("INSERT INTO stock VALUES(?, ?, ?, 0, 0)", {w, item, int64_t{10 + Pick(90)}});
    }
    for (int64_t d = 1; d <= kDistricts; ++d) {
      Execute("INSERT INTO district VALUES(?, ?, ?, 0, 1)", {w, d, int64_t{Pick(20)}});
      for (int c = 1; c <= scale_.customers; ++c) {
        EXPECT_TRUE(Execute("INSERT INTO customer VALUES(?, ?, ?, ?, ?, 0, 0, 0)",
                            {w, d, int64_t{c}, LastName(c), "first " + std::to_string(Pick(100))}));
      }
    }
  }
  connection_.Query("COMMIT");
}

bool TpccClient::FindCustomer(int64_t warehouse, int64_t district, int64_t* customer) {
  *customer = 1 + Pick(scale_.customers);
  if (Pick(10) < 4) return true;
  Rows rows;
  if (!Execute("SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? "
               "ORDER BY c_first",
               {warehouse, district, LastName(static_cast<int>(*customer))}, &rows)) {
    return false;
  }
  *customer = rows[rows.size() / 2][0];
  return true;
}

bool TpccClient::OrderLine(int64_t warehouse, int64_t district, int64_t order, int64_t number) {
  const int64_t item = 1 + Pick(scale_.items);
  const int64_t quantity = 1 + Pick(10);
  // One of a hundred comes from another warehouse.
  const int64_t supplier = Pick(100) == 0 ? 1 + Pick(scale_.warehouses) : warehouse;
  Rows price;
  Rows stock;
  if (!Execute("SELECT i_price FROM item WHERE i_id = ?", {item}, &price)) return false;
  if (!Execute("SELECT s_quantity FROM stock WHERE s_w_id = ? AND s_i_id = ?", {supplier, item},
               &stock)) {
    return false;
  }
  const int64_t left = stock[0][0] - quantity;
  return Execute(
             "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_orders = s_orders + 1 "
             "WHERE s_w_id = ? AND s_i_id = ?",
             {left < 10 ? left + 91 : left, quantity, supplier, item}) &&
         Execute("INSERT INTO order_line VALUES(?, ?, ?, ?, ?, NULL, ?, ?)",
                 {warehouse, district, order, number, item, quantity, quantity * price[0][0]});
}

bool TpccClient::NewOrder() {
  const int64_t w = 1 + Pick(scale_.warehouses);
  const int64_t d = 1 + Pick(kDistricts);
  const int64_t c = 1 + Pick(scale_.customers);
  const int64_t lines = 5 + Pick(11);
  Rows next;
  if (!Execute("SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ?", {w, d},
               &next)) {
    return false;
  }
  const int64_t order = next[0][0];
  if (!Execute("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?",
               {w, d}) ||
      !Execute("INSERT INTO orders VALUES(?, ?, ?, ?, ?, NULL, ?)",
               {w, d, order, c, ++clock_, lines}) ||
      !Execute("INSERT INTO new_order VALUES(?, ?, ?)", {w, d, order})) {
    return false;
  }
  for (int64_t line = 1; line <= lines; ++line) {
    if (!OrderLine(w, d, order, line)) return false;
  }
  give_up_ = Pick(100) == 0;
  return true;
}

bool TpccClient::Payment() {
  const int64_t w = 1 + Pick(scale_.warehouses);
  const int64_t d = 1 + Pick(kDistricts);
  const int64_t amount = 100 + Pick(500'000);
  int64_t c;
  return FindCustomer(w, d, &c) &&
         Execute("UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?", {amount, w}) &&
         Execute("UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?",
                 {amount, w, d}) &&
         Execute(
             "UPDATE customer SET c_balance = c_balance - ?, c_payments = c_payments + 1 "
             "WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
             {amount, w, d, c}) &&
         Execute("INSERT INTO history VALUES(?, ?, ?, ?, ?)",
                 {static_cast<int64_t>(random_() >> 1), w, d, c, amount});
}

bool TpccClient::OrderStatus() {
  const int64_t w = 1 + Pick(scale_.warehouses);
  const int64_t d = 1 + Pick(kDistricts);
  int64_t c;
  Rows order;
  Rows lines;
  if (!FindCustomer(w, d, &c) ||
      !Execute("SELECT o_id, o_ol_cnt FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? "
               "ORDER BY o_id DESC LIMIT 1",
               {w, d, c}, &order)) {
    return false;
  }
  if (order.empty()) return true;
  if (!Execute("SELECT ol_i_id, ol_quantity, ol_amount FROM order_line "
               "WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
               {w, d, order[0][0]}, &lines)) {
    return false;
  }
  EXPECT_EQ(lines.size(), static_cast<size_t>(order[0][1]));
  return true;
}

bool TpccClient::DeliverDistrict(int64_t w, int64_t d) {
  Rows oldest;
  Rows order;
  Rows sum;
  if (!Execute("SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? "
               "ORDER BY no_o_id LIMIT 1",
               {w, d}, &oldest)) {
    return false;
  }
  if (oldest.empty()) return true;
  const int64_t o = oldest[0][0];
  return Execute("DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?",
                 {w, d, o}) &&
         Execute("SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?",
                 {w, d, o}, &order) &&
         Execute("UPDATE orders SET o_carrier = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?",
                 {int64_t{1 + Pick(10)}, w, d, o}) &&
         Execute(
             "UPDATE order_line SET ol_delivery = ? "
             "WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
             {++clock_, w, d, o}) &&
         Execute(
             "SELECT sum(ol_amount) FROM order_line "
             "WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
             {w, d, o}, &sum) &&
         Execute(
             "UPDATE customer SET c_balance = c_balance + ?, c_deliveries = c_deliveries + 1 "
             "WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
             {sum[0][0], w, d, order[0][0]});
}

bool TpccClient::Delivery() {
  const int64_t w = 1 + Pick(scale_.warehouses);
  for (int64_t d = 1; d <= kDistricts; ++d) {
    if (!DeliverDistrict(w, d)) return false;
  }
  return true;
}

bool TpccClient::StockLevel() {
  const int64_t w = 1 + Pick(scale_.warehouses);
  const int64_t d = 1 + Pick(kDistricts);
  Rows next;
  if (!Execute("SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?", {w, d}, &next)) {
    return false;
  }
  return Execute(
      "SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock "
      "ON s_w_id = ol_w_id AND s_i_id = ol_i_id WHERE ol_w_id = ? AND ol_d_id = ? "
      "AND ol_o_id >= ? AND ol_o_id < ? AND s_quantity < ?",
      {w, d, next[0][0] - 20, next[0][0], int64_t{10 + Pick(11)}});
}

bool TpccClient::RunOne() {
  const int kind = Pick(100);
  while (true) {
    give_up_ = false;
    const bool done = Execute("BEGIN", {}) && (kind < 45   ? NewOrder()
                                               : kind < 88 ? Payment()
                                               : kind < 92 ? OrderStatus()
                                               : kind < 96 ? Delivery()
                                                           : StockLevel());
    if (done && Execute(give_up_ ? "ROLLBACK" : "COMMIT", {})) {
      if (kind < 45 && !give_up_) ++new_orders_;
      return true;
    }
    const int failure = code_;
    if (sqlite3_get_autocommit(connection_.get()) == 0) Execute("ROLLBACK", {});
    if ((failure & 0xff) != SQLITE_BUSY) {
      ADD_FAILURE() << "kind " << kind << ": " << sqlite3_errstr(failure);
      return false;
    }
    ++conflicts_;
  }
}

void TpccClient::ExpectNothing(const std::string& condition, const std::string& sql) {
  EXPECT_EQ(connection_.Query(sql), std::vector<std::string>()) << condition;
}

void TpccClient::CheckConsistency() {
  ExpectNothing("3.3.2.1: warehouses and districts have taken the same",
                "SELECT w_id FROM warehouse WHERE w_ytd <> "
                "(SELECT sum(d_ytd) FROM district WHERE d_w_id = w_id)");
  ExpectNothing("3.3.2.2: the next order follows the last one",
                "SELECT d_w_id, d_id FROM district WHERE d_next_o_id - 1 <> "
                "(SELECT coalesce(max(o_id), 0) FROM orders "
                "WHERE o_w_id = d_w_id AND o_d_id = d_id)");
  ExpectNothing("3.3.2.3: new orders have no gaps",
                "SELECT no_w_id, no_d_id FROM new_order GROUP BY 1, 2 "
                "HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)");
  ExpectNothing("3.3.2.4: lines of a district",
                "SELECT d_w_id, d_id FROM district WHERE (SELECT coalesce(sum(o_ol_cnt), 0) "
                "FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id) <> "
                "(SELECT count(*) FROM order_line WHERE ol_w_id = d_w_id AND ol_d_id = d_id)");
  ExpectNothing("3.3.2.5: who has no carrier is new",
                "SELECT o_w_id, o_d_id, o_id FROM orders WHERE (o_carrier IS NULL) <> "
                "EXISTS (SELECT 1 FROM new_order WHERE no_w_id = o_w_id AND no_d_id = o_d_id "
                "AND no_o_id = o_id)");
  ExpectNothing("3.3.2.6: lines of an order",
                "SELECT o_w_id, o_d_id, o_id FROM orders WHERE o_ol_cnt <> "
                "(SELECT count(*) FROM order_line WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id "
                "AND ol_o_id = o_id)");
  ExpectNothing("3.3.2.7: lines are delivered with their order",
                "SELECT ol_w_id, ol_d_id, ol_o_id FROM order_line JOIN orders ON "
                "o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id "
                "WHERE (ol_delivery IS NULL) <> (o_carrier IS NULL)");
  ExpectNothing("3.3.2.8: warehouses and the history of payments",
                "SELECT w_id FROM warehouse WHERE w_ytd <> "
                "(SELECT coalesce(sum(h_amount), 0) FROM history WHERE h_w_id = w_id)");
  ExpectNothing("3.3.2.9: districts and the history of payments",
                "SELECT d_w_id, d_id FROM district WHERE d_ytd <> (SELECT "
                "coalesce(sum(h_amount), 0) FROM history WHERE h_w_id = d_w_id AND h_d_id = d_id)");
}

}  // namespace nacre
