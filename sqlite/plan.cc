#include "sqlite/plan.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "sqlite/declaration_tokens.h"

namespace nacre::sqlite {
namespace {

// In steps of a scan over rows that lie side by side. A row that an index names is read together
// with others of it, which still costs several steps.
constexpr double kSeekCost = 8;
constexpr double kEntryCost = 0.7;
constexpr double kLookupCost = 4;
constexpr double kRowsMin = 16;

/// One index, as far as the constraints of a statement can use it.
struct Candidate {
  int index = 0;
  Plan plan{};
  std::vector<int> equal{};  ///< Numbers of constraints, for each equal part.
  int lower = -1;
  int upper = -1;
  bool one_row = false;
  bool ordered = false;
  double rows = 0;
  double cost = 0;
};

const char* CollationName(Collation collation) {
  switch (collation) {
    case Collation::kNoCase:
      return "NOCASE";
    case Collation::kRightTrim:
      return "RTRIM";
    case Collation::kBinary:
      break;
  }
  return "BINARY";
}

bool IsNumeric(Affinity affinity) {
  return affinity != Affinity::kText && affinity != Affinity::kBlob;
}

class Chooser {
 public:
  Chooser(const Schema& schema, const TableStatistics& statistics, sqlite3_index_info* info)
      : schema_(schema),
        info_(info),
        rows_(std::max(kRowsMin,
                       static_cast<double>(statistics.rows.load(std::memory_order_relaxed)))) {}

  Candidate Best() {
    Candidate best = Consider(0);
    for (int index = 1; index <= static_cast<int>(schema_.indexes.size()); ++index) {
      const Candidate other = Consider(index);
      if (other.cost < best.cost) best = other;
    }
    return best;
  }

  int Apply(const Candidate& chosen) {
    int argument = 0;
    bool sure = true;  // What comes behind a value that cannot be looked for is not used.
    for (size_t i = 0; i < chosen.equal.size(); ++i) {
      sure = sure && IsNumeric(Part(chosen.index, i).affinity);
      Use(chosen.equal[i], ++argument, sure);
    }
    if (chosen.lower >= 0 || chosen.upper >= 0) {
      sure = sure && IsNumeric(Part(chosen.index, chosen.equal.size()).affinity);
    }
    if (chosen.lower >= 0) Use(chosen.lower, ++argument, sure);
    if (chosen.upper >= 0) Use(chosen.upper, ++argument, sure);
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

  /// `sure`: SQLite need not look at the rows again. So it is with numbers: what they are compared
  /// with does not depend on the other side's type (Cursor::Filter).
  void Use(int constraint, int argument, bool sure) {
    info_->aConstraintUsage[constraint].argvIndex = argument;
    info_->aConstraintUsage[constraint].omit = sure ? 1 : 0;
  }

  /// SQLite calls the column that is the row's number -1, too.
  bool IsColumn(int column, const KeyPart& part) const {
    if (column == part.column) return true;
    return schema_.has_rowid() && column == kRowNumber && part.column == schema_.rowid_column();
  }

  bool HasConstant(int constraint) const {
    sqlite3_value* value = nullptr;
    return sqlite3_vtab_rhs_value(info_, constraint, &value) == SQLITE_OK;
  }

  /// A constraint of `part` with one of the operators, or -1.
  int Find(const KeyPart& part, std::initializer_list<int> operators) const {
    for (int i = 0; i < info_->nConstraint; ++i) {
      const auto& constraint = info_->aConstraint[i];
      if (constraint.usable == 0 || !IsColumn(constraint.iColumn, part)) continue;
      if (std::find(operators.begin(), operators.end(), constraint.op) == operators.end()) continue;
      // SQLite looks for each value of a list by itself, but compares rows of a virtual table with
      // it by other rules than those of its own tables, unless the column is numeric.
      if (!IsNumeric(part.affinity) && sqlite3_vtab_in(info_, i, -1) != 0) continue;
      const char* const collation = sqlite3_vtab_collation(info_, i);
      if (collation != nullptr && !SameName(collation, CollationName(part.collation))) continue;
      return i;
    }
    return -1;
  }

  Candidate Consider(int index) {
    const KeySpace& keys = schema_.key_space(index);
    Candidate candidate;
    candidate.index = index;
    size_t place = 0;
    bool fixed = true;  // All rows of the scan are equal in the first parts, whatever comes.
    for (; place < keys.parts.size(); ++place) {
      const KeyPart& part = keys.parts[place];
      const int equal = Find(part, {SQLITE_INDEX_CONSTRAINT_EQ, SQLITE_INDEX_CONSTRAINT_IS,
                                    SQLITE_INDEX_CONSTRAINT_ISNULL});
      if (equal < 0) break;
      const bool constant = HasConstant(equal);
      const bool is = info_->aConstraint[equal].op != SQLITE_INDEX_CONSTRAINT_EQ;
      candidate.plan.equal += is ? (constant ? 'I' : 'i') : (constant ? 'E' : 'e');
      candidate.equal.push_back(equal);
      fixed = fixed && (IsNumeric(part.affinity) || constant);
    }
    if (place < keys.parts.size()) FindBounds(keys.parts[place], &candidate);
    candidate.one_row = keys.unique && place == keys.parts.size() && fixed &&
                        candidate.plan.equal.find_first_of("iI") == std::string::npos;
    candidate.plan.covering = index != 0 && Covers(keys);
    candidate.ordered = Orders(keys, fixed ? place : 0, &candidate.plan.backwards);
    Estimate(keys, &candidate);
    return candidate;
  }

  void FindBounds(const KeyPart& part, Candidate* candidate) const {
    candidate->lower = Find(part, {SQLITE_INDEX_CONSTRAINT_GT, SQLITE_INDEX_CONSTRAINT_GE});
    candidate->upper = Find(part, {SQLITE_INDEX_CONSTRAINT_LT, SQLITE_INDEX_CONSTRAINT_LE});
    bool constant = true;
    if (candidate->lower >= 0) {
      const int op = info_->aConstraint[candidate->lower].op;
      candidate->plan.lower = op == SQLITE_INDEX_CONSTRAINT_GT ? '>' : 'g';
      constant = HasConstant(candidate->lower);
    }
    if (candidate->upper >= 0) {
      const int op = info_->aConstraint[candidate->upper].op;
      candidate->plan.upper = op == SQLITE_INDEX_CONSTRAINT_LT ? '<' : 'l';
      constant = constant && HasConstant(candidate->upper);
    }
    candidate->plan.constant_bounds = constant;
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

  /// Whether a scan gives the order that the statement wants, the first `equal` parts being the
  /// same in all its rows.
  bool Orders(const KeySpace& keys, size_t equal, bool* backwards) const {
    *backwards = false;
    if (info_->nOrderBy == 0) return false;
    std::vector<KeyPart> order = keys.parts;
    if (&keys != &schema_.primary) {
      order.insert(order.end(), schema_.primary.parts.begin(), schema_.primary.parts.end());
    }
    std::optional<bool> descending;
    size_t place = equal;
    for (int i = 0; i < info_->nOrderBy; ++i) {
      const auto& term = info_->aOrderBy[i];
      if (IsEqualPart(keys, equal, term.iColumn)) continue;
      if (place >= order.size()) return false;
      if (!IsColumn(term.iColumn, order[place])) return false;
      if (descending.has_value() && *descending != (term.desc != 0)) return false;
      descending = term.desc != 0;
      ++place;
    }
    *backwards = descending.value_or(false);
    return true;
  }

  bool IsEqualPart(const KeySpace& keys, size_t equal, int column) const {
    for (size_t i = 0; i < equal; ++i) {
      if (IsColumn(column, keys.parts[i])) return true;
    }
    return false;
  }

  void Estimate(const KeySpace& keys, Candidate* candidate) const {
    double rows = rows_;
    if (candidate->one_row) {
      rows = 1;
    } else {
      const size_t parts = keys.parts.size();
      const double fewest = keys.unique ? 1 : 4;
      if (!candidate->equal.empty()) {
        const double share =
            static_cast<double>(candidate->equal.size()) / static_cast<double>(parts);
        rows = std::max(fewest, std::pow(rows_, 1 - share));
      }
      if (candidate->lower >= 0) rows /= 4;
      if (candidate->upper >= 0) rows /= 4;
      rows = std::max(rows, 1.0);
    }
    candidate->rows = rows;
    double row_cost = 1;
    if (candidate->index != 0) {
      row_cost = candidate->plan.covering ? kEntryCost : kEntryCost + kLookupCost;
    }
    candidate->cost = kSeekCost + rows * row_cost;
    if (info_->nOrderBy > 0 && !candidate->ordered) {
      candidate->cost += rows * std::log2(rows + 1) * 0.3;
    }
  }

  const Schema& schema_;
  sqlite3_index_info* const info_;
  const double rows_;
};

}  // namespace

std::string Plan::Encode() const {
  return equal + '|' + lower + upper + (backwards ? 'b' : 'f') + (covering ? 'c' : '-') +
         (constant_bounds ? 'K' : '-');
}

Plan Plan::Decode(const char* text) {
  Plan plan;
  while (*text != '|') plan.equal += *text++;
  plan.lower = text[1];
  plan.upper = text[2];
  plan.backwards = text[3] == 'b';
  plan.covering = text[4] == 'c';
  plan.constant_bounds = text[5] == 'K';
  return plan;
}

int ChoosePlan(const Schema& schema, const TableStatistics& statistics, sqlite3_index_info* info) {
  Chooser chooser(schema, statistics, info);
  return chooser.Apply(chooser.Best());
}

}  // namespace nacre::sqlite
