#include "sqlite/query/plan.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "sqlite/query/key_distribution.h"
#include "sqlite/row/declaration_tokens.h"

namespace nacre::sqlite {
namespace {

// The cost in steps of a scan over rows that lie side by side. A row that an index names is read
// together with others of it, which still costs several steps.
constexpr double kSeekCost = 8;
constexpr double kEntryCost = 0.7;
constexpr double kLookupCost = 4;
constexpr double kRowsMin = 16;

/// A list of values that SQLite says nothing of.
constexpr double kListed = 8;

/// One index, as far as the constraints of a statement can use it.
struct Candidate {
  int index = 0;
  Plan plan{};
  std::vector<int> equal{};  ///< Numbers of constraints, for each equal part.
  int lower = -1;
  int upper = -1;
  int pattern = -1;
  bool one_row = false;
  bool ordered = false;
  double rows = 0;
  double cost = 0;
};

class Chooser {
 public:
  Chooser(Session* session, const Schema& schema, const TableStatistics& statistics,
          sqlite3_index_info* info)
      : session_(session),
        schema_(schema),
        info_(info),
        rows_(std::max(kRowsMin,
                       static_cast<double>(statistics.rows.load(std::memory_order_relaxed)))),
        distribution_(statistics.distribution()) {}

  Candidate Best() {
    Candidate best = Consider(0);
    for (int index = 1; index <= static_cast<int>(schema_.indexes.size()); ++index) {
      const Candidate other = Consider(index);
      if (other.cost < best.cost) best = other;
    }
    return best;
  }

  int Apply(Candidate chosen) {
    int argument = 0;
    int sure = 0;  // How many constraints SQLite need not look at again.
    const auto use = [&](int constraint, bool is_sure) {
      if (constraint < 0) return;
      // What comes behind a value that is not looked for alone does not narrow the scan.
      is_sure = is_sure && sure == argument;
      if (is_sure) ++sure;
      Use(constraint, ++argument, is_sure);
    };
    for (size_t i = 0; i < chosen.equal.size(); ++i) {
      use(chosen.equal[i], IsSure(chosen.equal[i], Part(chosen.index, i)));
      sqlite3_vtab_in(info_, chosen.equal[i], 1);
    }
    if (chosen.lower >= 0 || chosen.upper >= 0) {
      // An unsure bound adds keys that the other one would leave out.
      const KeyPart& part = Part(chosen.index, chosen.equal.size());
      const bool both = (chosen.lower < 0 || IsSure(chosen.lower, part)) &&
                        (chosen.upper < 0 || IsSure(chosen.upper, part));
      use(chosen.lower, both);
      use(chosen.upper, both);
    }
    if (chosen.pattern >= 0) Use(chosen.pattern, ++argument, false);
    UseLimit(sure, argument, &chosen);
    const std::string text = chosen.plan.Encode();
    info_->idxNum = chosen.index;
    info_->idxStr = sqlite3_mprintf("%s", text.c_str());
    info_->needToFreeIdxStr = 1;
    info_->orderByConsumed = chosen.ordered ? 1 : 0;
    info_->estimatedCost = chosen.cost;
    info_->estimatedRows = static_cast<sqlite3_int64>(std::max(1.0, chosen.rows));
    if (chosen.one_row) info_->idxFlags |= SQLITE_INDEX_SCAN_UNIQUE;
    return info_->idxStr == nullptr ? SQLITE_NOMEM : SQLITE_OK;
  }

 private:
  const KeyPart& Part(int index, size_t place) const {
    return schema_.key_space(index).parts[place];
  }
  const auto& Constraint(int number) const { return info_->aConstraint[number]; }

  void Use(int constraint, int argument, bool sure) {
    info_->aConstraintUsage[constraint].argvIndex = argument;
    info_->aConstraintUsage[constraint].omit = sure ? 1 : 0;
  }

  /// SQLite calls the column that is the row's number -1, too.
  bool IsColumn(int column, const KeyPart& part) const {
    if (column == part.column) return true;
    return schema_.has_rowid() && column == kRowNumber && part.column == schema_.rowid_column();
  }

  /// A text or a blob, which is compared as it is. A number may be one that was cast, and turn
  /// texts of the column into numbers, too.
  bool HasBytes(int constraint) const {
    sqlite3_value* value = nullptr;
    if (sqlite3_vtab_rhs_value(info_, constraint, &value) != SQLITE_OK) return false;
    const int type = sqlite3_value_type(value);
    return type == SQLITE_TEXT || type == SQLITE_BLOB;
  }

  /// The keys that are read are those of the rows that fulfil the constraint (KeyRanges).
  bool IsSure(int constraint, const KeyPart& part) const {
    const int op = Constraint(constraint).op;
    if (op == SQLITE_INDEX_CONSTRAINT_ISNULL || op == SQLITE_INDEX_CONSTRAINT_ISNOTNULL) {
      return true;
    }
    return IsNumeric(part.affinity) || HasBytes(constraint);
  }

  bool IsList(int constraint) const { return sqlite3_vtab_in(info_, constraint, -1) != 0; }

  bool HasCollationOf(int constraint, const KeyPart& part) const {
    const char* const collation = sqlite3_vtab_collation(info_, constraint);
    return collation == nullptr || SameName(collation, CollationName(part.collation));
  }

  static bool Collates(int op) {
    return op != SQLITE_INDEX_CONSTRAINT_ISNOTNULL && op != SQLITE_INDEX_CONSTRAINT_ISNULL &&
           op != SQLITE_INDEX_CONSTRAINT_LIKE && op != SQLITE_INDEX_CONSTRAINT_GLOB;
  }

  /// A constraint of `part` with one of the operators, or -1.
  int Find(const KeyPart& part, std::initializer_list<int> operators) const {
    // SQLite hands over the lists among the first constraints only. It looks for each value of
    // another one by itself, but then compares rows of a virtual table with it by other rules than
    // those of its own tables, unless the column is numeric.
    constexpr int kListsMax = 32;
    for (int i = 0; i < info_->nConstraint; ++i) {
      const auto& constraint = Constraint(i);
      if (constraint.usable == 0 || !IsColumn(constraint.iColumn, part)) continue;
      if (std::find(operators.begin(), operators.end(), constraint.op) == operators.end()) continue;
      if (i >= kListsMax && !IsNumeric(part.affinity)) continue;
      if (Collates(constraint.op) && !HasCollationOf(i, part)) continue;
      return i;
    }
    return -1;
  }

  int FindEqual(const KeyPart& part) const {
    // One value is better than a list.
    int found = -1;
    for (const int op :
         {SQLITE_INDEX_CONSTRAINT_EQ, SQLITE_INDEX_CONSTRAINT_IS, SQLITE_INDEX_CONSTRAINT_ISNULL}) {
      const int other = Find(part, {op});
      if (found < 0 || (other >= 0 && IsList(found))) found = other >= 0 ? other : found;
    }
    return found;
  }

  char LetterOf(int equal) const {
    if (IsList(equal)) return 'n';
    const bool bytes = HasBytes(equal);
    switch (Constraint(equal).op) {
      case SQLITE_INDEX_CONSTRAINT_EQ:
        return bytes ? 'E' : 'e';
      case SQLITE_INDEX_CONSTRAINT_IS:
        return bytes ? 'I' : 'i';
      default:
        return 'I';
    }
  }

  Candidate Consider(int index) {
    const KeySpace& keys = schema_.key_space(index);
    Candidate candidate;
    candidate.index = index;
    std::vector<bool> fixed(keys.parts.size());  // All rows that are found are equal there.
    size_t place = 0;
    for (; place < keys.parts.size(); ++place) {
      const KeyPart& part = keys.parts[place];
      const int equal = FindEqual(part);
      if (equal < 0) break;
      const char letter = LetterOf(equal);
      candidate.plan.equal += letter;
      candidate.equal.push_back(equal);
      fixed[place] = letter != 'n' && IsSure(equal, part) && part.collation == CollationOf(part);
    }
    if (place < keys.parts.size()) FindBounds(keys.parts[place], &candidate);
    candidate.one_row = keys.unique && place == keys.parts.size() &&
                        std::count(fixed.begin(), fixed.end(), false) == 0 &&
                        candidate.plan.equal.find_first_of("iI") == std::string::npos;
    std::string& scan = candidate.plan.scan;
    if (index != 0 && Covers(keys)) scan[Plan::kCovering] = 'c';
    bool backwards = false;
    candidate.ordered = Orders(keys, fixed, &backwards);
    if (backwards) scan[Plan::kDirection] = 'b';
    Estimate(keys, &candidate);
    return candidate;
  }

  /// The column's collation: SQLite sorts by it.
  Collation CollationOf(const KeyPart& part) const {
    if (part.column == kRowNumber) return part.collation;
    return schema_.declaration.columns[static_cast<size_t>(part.column)].collation;
  }

  void FindBounds(const KeyPart& part, Candidate* candidate) const {
    std::string& scan = candidate->plan.scan;
    if (part.affinity == Affinity::kText) {
      const int pattern = Find(part, {SQLITE_INDEX_CONSTRAINT_LIKE, SQLITE_INDEX_CONSTRAINT_GLOB});
      // SQLite offers the bounds of a pattern, too, but these lack blobs that match it.
      if (pattern >= 0 && !session_->HasOwnPatterns()) {
        candidate->pattern = pattern;
        const bool like = Constraint(pattern).op == SQLITE_INDEX_CONSTRAINT_LIKE;
        scan[Plan::kPattern] = like ? 'L' : 'G';
        return;
      }
    }
    candidate->lower = Find(part, {SQLITE_INDEX_CONSTRAINT_GT, SQLITE_INDEX_CONSTRAINT_GE});
    candidate->upper = Find(part, {SQLITE_INDEX_CONSTRAINT_LT, SQLITE_INDEX_CONSTRAINT_LE});
    if (candidate->lower < 0 && candidate->upper < 0) {
      candidate->lower = Find(part, {SQLITE_INDEX_CONSTRAINT_ISNOTNULL});
    }
    bool bytes = true;
    if (candidate->lower >= 0) {
      const int op = Constraint(candidate->lower).op;
      scan[Plan::kLower] = op == SQLITE_INDEX_CONSTRAINT_GT   ? '>'
                           : op == SQLITE_INDEX_CONSTRAINT_GE ? 'g'
                                                              : '!';
      bytes = HasBytes(candidate->lower);
    }
    if (candidate->upper >= 0) {
      const int op = Constraint(candidate->upper).op;
      scan[Plan::kUpper] = op == SQLITE_INDEX_CONSTRAINT_LT ? '<' : 'l';
      bytes = bytes && HasBytes(candidate->upper);
    }
    if (bytes) scan[Plan::kConstant] = 'K';
  }

  /// Sets how many rows of its order a statement wants that reads this table alone.
  void UseLimit(int sure, int argument, Candidate* chosen) {
    int limit = -1;
    int offset = -1;
    int others = 0;
    for (int i = 0; i < info_->nConstraint; ++i) {
      if (Constraint(i).op == SQLITE_INDEX_CONSTRAINT_LIMIT) {
        limit = i;
      } else if (Constraint(i).op == SQLITE_INDEX_CONSTRAINT_OFFSET) {
        offset = i;
      } else {
        ++others;
      }
    }
    const bool ordered = info_->nOrderBy == 0 || chosen->ordered;
    if (!ordered || limit < 0 || Constraint(limit).usable == 0) return;
    chosen->plan.scan[Plan::kLimit] = 'L';
    Use(limit, ++argument, false);
    if (offset < 0 || Constraint(offset).usable == 0) return;
    // SQLite itself has to pass over them: in a UNION ALL the rest of the number counts for the
    // next table, which cannot be told.
    chosen->plan.scan[Plan::kOffset] = sure == others ? 'O' : 'o';
    Use(offset, ++argument, false);
  }

  /// Whether entries of `keys` have all columns that the statement reads.
  bool Covers(const KeySpace& keys) const {
    const auto has = [&](int column) {
      for (const KeyPart& part : keys.parts) {
        if (part.column == column && part.exact) return true;
      }
      return schema_.key_place[static_cast<size_t>(column)] >= 0;
    };
    for (int column = 0; column < schema_.column_count(); ++column) {
      // The last bit stands for all columns from the 64th on.
      const uint64_t bit = 1ULL << std::min(column, 63);
      if ((info_->colUsed & bit) != 0 && !has(column)) return false;
    }
    return true;
  }

  /// Whether a scan gives the order that the statement wants. `fixed`: parts of `keys` that are the
  /// same in all its rows.
  bool Orders(const KeySpace& keys, const std::vector<bool>& fixed, bool* backwards) const {
    *backwards = false;
    if (info_->nOrderBy == 0) return false;
    std::vector<KeyPart> order;
    for (size_t i = 0; i < keys.parts.size(); ++i) {
      if (!fixed[i]) order.push_back(keys.parts[i]);
    }
    if (&keys != &schema_.primary) {
      order.insert(order.end(), schema_.primary.parts.begin(), schema_.primary.parts.end());
    }
    std::optional<bool> reversed;
    size_t place = 0;
    for (int i = 0; i < info_->nOrderBy; ++i) {
      const auto& term = info_->aOrderBy[i];
      if (IsFixed(keys, fixed, term.iColumn)) continue;
      if (place >= order.size()) return false;
      const KeyPart& part = order[place];
      if (!IsColumn(term.iColumn, part) || part.collation != CollationOf(part)) return false;
      const bool reverse = (term.desc != 0) != part.descending;
      if (reversed.has_value() && *reversed != reverse) return false;
      reversed = reverse;
      ++place;
    }
    *backwards = reversed.value_or(false);
    return true;
  }

  bool IsFixed(const KeySpace& keys, const std::vector<bool>& fixed, int column) const {
    for (size_t i = 0; i < keys.parts.size(); ++i) {
      if (fixed[i] && IsColumn(column, keys.parts[i])) return true;
    }
    return false;
  }

  /// The estimated rows that are equal in the first parts of the key.
  double EqualRows(const KeySpace& keys, const Candidate& candidate) const {
    const size_t equal = candidate.equal.size();
    double rows;
    if (distribution_ != nullptr) {
      rows = distribution_->equal_entries[static_cast<size_t>(candidate.index)][equal - 1];
    } else {
      const double share = static_cast<double>(equal) / static_cast<double>(keys.parts.size());
      rows = std::max(keys.unique ? 1.0 : 4.0, std::pow(rows_, 1 - share));
    }
    for (const char letter : candidate.plan.equal) rows *= letter == 'n' ? kListed : 1;
    return std::min(rows, rows_);
  }

  void Estimate(const KeySpace& keys, Candidate* candidate) const {
    double rows = rows_;
    if (candidate->one_row) {
      rows = 1;
    } else {
      if (!candidate->equal.empty()) rows = EqualRows(keys, *candidate);
      if (candidate->lower >= 0) rows /= candidate->plan.scan[Plan::kLower] == '!' ? 1.25 : 4;
      if (candidate->upper >= 0) rows /= 4;
      if (candidate->pattern >= 0) rows /= 8;
      rows = std::max(rows, 1.0);
    }
    candidate->rows = rows;
    double row_cost = 1;
    if (candidate->index != 0) {
      row_cost =
          candidate->plan.scan[Plan::kCovering] == 'c' ? kEntryCost : kEntryCost + kLookupCost;
    }
    candidate->cost = kSeekCost + rows * row_cost;
    if (info_->nOrderBy > 0 && !candidate->ordered) {
      candidate->cost += rows * std::log2(rows + 1) * 0.3;
    }
  }

  Session* const session_;
  const Schema& schema_;
  sqlite3_index_info* const info_;
  const double rows_;
  const std::shared_ptr<const KeyDistribution> distribution_;
};

}  // namespace

int ChoosePlan(Session* session, const Schema& schema, const TableStatistics& statistics,
               sqlite3_index_info* info) {
  Chooser chooser(session, schema, statistics, info);
  return chooser.Apply(chooser.Best());
}

}  // namespace nacre::sqlite
