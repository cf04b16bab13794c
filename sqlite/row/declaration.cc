#include "sqlite/row/declaration.h"

#include <cstdlib>

#include "sqlite/row/declaration_tokens.h"
#include "util/never_destroyed.h"

namespace nacre::sqlite {
namespace {

class Parser {
 public:
  explicit Parser(Declaration* declaration) : declaration_(declaration) {}

  Status Add(const std::string& argument) {
    argument_ = argument;
    at_ = 0;
    NACRE_RETURN_IF_ERROR(Tokenize(argument, &tokens_));
    if (tokens_.size() >= 2 && tokens_[1].Is("=")) return AddOption();
    declaration_->arguments.push_back(argument);
    if (Peek().Is("CONSTRAINT")) at_ += 2;  // This skips its name as well.
    if (Peek().Is("CHECK")) {
      NACRE_RETURN_IF_ERROR(TakeCheck(0));
      return at_ == tokens_.size() ? Status::OK() : NotUnderstood();
    }
    NACRE_RETURN_IF_ERROR(RefuseOperators());
    if (Take("PRIMARY")) {
      if (!Take("KEY")) return Wrong("KEY is missing after PRIMARY");
      return AddPrimaryKey();
    }
    if (Peek().Is("UNIQUE") && Peek(1).Is("(")) return AddIndex(/*unique=*/true);
    if (Peek().Is("INDEX") && (Peek(1).Is("(") || Peek(2).Is("("))) return AddIndex(false);
    if (Peek().Is("FOREIGN")) return Lacking("FOREIGN KEY");
    if (at_ != 0) return Wrong("no key or CHECK behind CONSTRAINT");
    return AddColumn();
  }

  Status Finish() {
    if (declaration_->database.pool.empty()) {
      return Status::InvalidArgument("pool='...' is missing (see nacre/pool.h)");
    }
    if (!declaration_->database.coordinator.empty() && !declaration_->database.sharded) {
      return Status::InvalidArgument("coordinator='...' needs sharded='on'");
    }
    if (declaration_->columns.empty()) return Status::InvalidArgument("no column is declared");
    for (const KeyColumn& part : declaration_->primary_key) {
      declaration_->columns[static_cast<size_t>(part.column)].not_null = true;
    }
    return Status::OK();
  }

 private:
  const Token& Peek(size_t ahead = 0) const {
    static const NeverDestroyed<Token> kNone;
    return at_ + ahead < tokens_.size() ? tokens_[at_ + ahead] : *kNone;
  }
  bool Take(const char* word) {
    if (!Peek().Is(word)) return false;
    ++at_;
    return true;
  }
  Status Wrong(const std::string& what) const {
    return Status::InvalidArgument(what + " in '" + argument_ + "'");
  }
  Status NotUnderstood() const { return Wrong("'" + Peek().text + "' is not understood"); }
  static Status Lacking(const std::string& what) {
    return Status::NotSupported(what + " has no effect on a virtual table, and is refused");
  }

  /// Parses a CHECK; its text begins with the token `begin`.
  Status TakeCheck(size_t begin) {
    if (!Peek(1).Is("(")) return Wrong("( is missing after CHECK");
    ++at_;
    int depth = 0;
    do {
      if (at_ == tokens_.size()) return Wrong(") is missing");
      depth += Peek().Is("(") ? 1 : 0;
      depth -= Peek().Is(")") ? 1 : 0;
      ++at_;
    } while (depth > 0);
    const size_t first = tokens_[begin].begin;
    declaration_->checks.push_back(argument_.substr(first, tokens_[at_ - 1].end - first));
    return Status::OK();
  }

  /// Operators occur in conditions only.
  Status RefuseOperators() const {
    int depth = 0;
    bool in_check = false;
    for (const Token& token : tokens_) {
      if (depth == 0 && !token.Is("(")) in_check = token.Is("CHECK");
      depth += token.Is("(") ? 1 : 0;
      depth -= token.Is(")") ? 1 : 0;
      if (token.is_operator && !in_check) return Wrong("unexpected '" + token.text + "'");
    }
    return Status::OK();
  }

  Status AddOption() {
    if (tokens_.size() != 3) return Wrong("an option is name='value'");
    const std::string& value = tokens_[2].text;
    DatabaseOptions& options = declaration_->database;
    if (tokens_[0].Is("pool")) {
      options.pool = value;
    } else if (tokens_[0].Is("database")) {
      options.name = value;
    } else if (tokens_[0].Is("redundancy")) {
      options.redundancy = value;
    } else if (tokens_[0].Is("write_buffer_size")) {
      char* end;
      options.write_buffer_size = std::strtoull(value.c_str(), &end, 10);
      if (value.empty() || *end != '\0') return Wrong("not a number of bytes");
    } else if (tokens_[0].Is("command_log")) {
      options.command_log = value;
    } else if (tokens_[0].Is("command_log_size")) {
      char* end;
      options.command_log_size = std::strtoull(value.c_str(), &end, 10);
      if (options.command_log_size == 0 || *end != '\0') return Wrong("not a number of bytes");
    } else if (tokens_[0].Is("remote_log")) {
      options.remote_log = SameName(value, "on");
      if (!options.remote_log && !SameName(value, "off")) return Wrong("neither on nor off");
    } else if (tokens_[0].Is("sharded")) {
      options.sharded = SameName(value, "on");
      if (!options.sharded && !SameName(value, "off")) return Wrong("neither on nor off");
    } else if (tokens_[0].Is("coordinator")) {
      options.coordinator = value;
    } else if (tokens_[0].Is("member_address")) {
      options.member_address = value;
    } else {
      return Wrong("unknown option");
    }
    return Status::OK();
  }

  Status ColumnNumber(const std::string& name, int* number) const {
    for (size_t i = 0; i < declaration_->columns.size(); ++i) {
      if (SameName(declaration_->columns[i].name, name)) {
        *number = static_cast<int>(i);
        return Status::OK();
      }
    }
    return Wrong("no column '" + name + "' is declared before it");
  }

  Status ParseKeyColumn(std::vector<KeyColumn>* columns) {
    KeyColumn part;
    NACRE_RETURN_IF_ERROR(ColumnNumber(Peek().text, &part.column));
    for (const KeyColumn& other : *columns) {
      if (other.column == part.column) return Wrong("column '" + Peek().text + "' twice");
    }
    ++at_;
    if (Take("COLLATE")) {
      part.collation.emplace();
      NACRE_RETURN_IF_ERROR(ParseCollation(&*part.collation));
    }
    part.descending = TakeDirection();
    columns->push_back(part);
    return Status::OK();
  }

  /// Whether it is DESC.
  bool TakeDirection() {
    if (Take("DESC")) return true;
    Take("ASC");
    return false;
  }

  Status ParseColumns(std::vector<KeyColumn>* columns) {
    if (!Take("(")) return Wrong("( is missing");
    do {
      NACRE_RETURN_IF_ERROR(ParseKeyColumn(columns));
    } while (Take(","));
    if (!Take(")")) return Wrong(") is missing");
    return at_ == tokens_.size() ? Status::OK() : NotUnderstood();
  }

  Status AddPrimaryKey() {
    std::vector<KeyColumn>& key = declaration_->primary_key;
    if (!key.empty()) return Wrong("a second primary key");
    NACRE_RETURN_IF_ERROR(ParseColumns(&key));
    // As in SQLite, such a key is the row's number, which has an order of its own.
    const std::string& type = declaration_->columns[static_cast<size_t>(key[0].column)].type;
    if (key.size() == 1 && SameName(type, "INTEGER")) key[0] = {key[0].column};
    return Status::OK();
  }

  Status AddIndex(bool unique) {
    IndexDeclaration index;
    index.unique = unique;
    ++at_;
    if (!Peek().Is("(")) ++at_;  // A name, for the reader.
    NACRE_RETURN_IF_ERROR(ParseColumns(&index.columns));
    declaration_->indexes.push_back(std::move(index));
    return Status::OK();
  }

  bool AtConstraint() const {
    for (const char* word : {"PRIMARY", "NOT", "NULL", "UNIQUE", "COLLATE", "CHECK", "DEFAULT",
                             "REFERENCES", "CONSTRAINT", "GENERATED", "AS", "HIDDEN"}) {
      if (Peek().Is(word)) return true;
    }
    return false;
  }

  /// Words of the type, with "(10,2)" as it is written. SQLite reads them again in CreateTable: no
  /// comma or quoted word may declare a column there that is none here.
  Status ParseType(std::string* type) {
    int depth = 0;
    for (; at_ < tokens_.size() && !AtConstraint(); ++at_) {
      const Token& token = Peek();
      const bool opens = token.Is("(");
      const bool closes = token.Is(")");
      if (token.quoted || token.Is("=") || (depth == 0 && (closes || token.Is(",")))) {
        return Wrong("'" + token.text + "' cannot stand in a type");
      }
      depth += int{opens} - int{closes};
      if (!type->empty() && !opens && !closes && !token.Is(",")) *type += ' ';
      *type += token.text;
    }
    return depth == 0 ? Status::OK() : Wrong(") is missing");
  }

  Status AddColumn() {
    if (tokens_.empty()) return Status::InvalidArgument("an argument is empty");
    ColumnDeclaration column;
    column.name = Peek().text;
    int other;
    if (ColumnNumber(column.name, &other).ok()) return Wrong("duplicate column name");
    ++at_;
    NACRE_RETURN_IF_ERROR(ParseType(&column.type));
    column.affinity = AffinityOf(column.type);
    declaration_->columns.push_back(column);
    while (at_ < tokens_.size()) NACRE_RETURN_IF_ERROR(AddColumnConstraint());
    return Status::OK();
  }

  Status AddColumnConstraint() {
    ColumnDeclaration& column = declaration_->columns.back();
    const int number = static_cast<int>(declaration_->columns.size()) - 1;
    if (Take("NULL")) return Status::OK();
    if (Take("NOT")) {
      column.not_null = true;
      return Take("NULL") ? Status::OK() : Wrong("NULL is missing after NOT");
    }
    if (Take("UNIQUE")) {
      declaration_->indexes.push_back({{{number}}, true});
      return Status::OK();
    }
    if (Take("PRIMARY")) {
      if (!Take("KEY")) return Wrong("KEY is missing after PRIMARY");
      if (!declaration_->primary_key.empty()) return Wrong("a second primary key");
      declaration_->primary_key = {{number}};
      declaration_->primary_key[0].descending = TakeDirection();
      return Status::OK();
    }
    if (Take("COLLATE")) return ParseCollation(&column.collation);
    const size_t begin = at_;
    if (Peek().Is("CONSTRAINT")) at_ += 2;
    if (Peek().Is("CHECK")) return TakeCheck(begin);
    if (at_ != begin) return Status::OK();             // Other constraints need no name.
    if (Peek().Is("DEFAULT") && Peek(1).Is("NULL")) {  // As without it.
      at_ += 2;
      return Status::OK();
    }
    return Lacking("'" + Peek().text + "' of a column");
  }

  Status ParseCollation(Collation* collation) {
    if (Take("BINARY")) {
      *collation = Collation::kBinary;
    } else if (Take("NOCASE")) {
      *collation = Collation::kNoCase;
    } else if (Take("RTRIM")) {
      *collation = Collation::kRightTrim;
    } else {
      return Wrong("only BINARY, NOCASE and RTRIM have keys in their order");
    }
    return Status::OK();
  }

  Declaration* const declaration_;
  std::string argument_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace

std::string Quoted(const std::string& name) {
  std::string quoted = "\"";
  for (char c : name) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

Status Declaration::Parse(const std::vector<std::string>& arguments, Declaration* declaration) {
  *declaration = Declaration();
  Parser parser(declaration);
  for (const std::string& argument : arguments) NACRE_RETURN_IF_ERROR(parser.Add(argument));
  return parser.Finish();
}

Status Declaration::ParseTable(const std::vector<std::string>& arguments,
                               const DatabaseOptions& options, Declaration* declaration) {
  *declaration = Declaration();
  declaration->database = options;
  Parser parser(declaration);
  for (const std::string& argument : arguments) NACRE_RETURN_IF_ERROR(parser.Add(argument));
  return parser.Finish();
}

bool Declaration::HasRowid() const {
  if (primary_key.empty()) return true;
  return primary_key.size() == 1 && !primary_key[0].descending &&
         SameName(columns[static_cast<size_t>(primary_key[0].column)].type, "INTEGER");
}

std::string Declaration::ColumnList() const {
  std::string sql;
  for (const ColumnDeclaration& column : columns) {
    if (!sql.empty()) sql += ", ";
    sql += Quoted(column.name) + ' ' + column.type;
    if (column.collation != Collation::kBinary) {
      sql.append(" COLLATE ").append(CollationName(column.collation));
    }
  }
  return sql;
}

std::string Declaration::CreateTable() const {
  const std::string sql = "CREATE TABLE x(" + ColumnList();
  if (HasRowid()) return sql + ')';
  return sql + ", \"nacre key\" BLOB HIDDEN NOT NULL PRIMARY KEY) WITHOUT ROWID";
}

std::string Declaration::Signature() const {
  const auto key = [](const char* kind, const std::vector<KeyColumn>& parts) {
    std::string text = kind;
    for (const KeyColumn& part : parts) {
      text += ' ' + std::to_string(part.column);
      if (part.collation) text.append(" COLLATE ").append(CollationName(*part.collation));
      if (part.descending) text += " DESC";
    }
    return text + '\n';
  };
  std::string text;
  for (const ColumnDeclaration& column : columns) {
    text += Quoted(column.name) + ' ' + column.type + ' ' + CollationName(column.collation) +
            (column.not_null ? " NOT NULL\n" : "\n");
  }
  text += key("PRIMARY KEY", primary_key);
  for (const IndexDeclaration& index : indexes) {
    text += key(index.unique ? "UNIQUE" : "INDEX", index.columns);
  }
  for (const std::string& check : checks) text += check + '\n';
  return text;
}

}  // namespace nacre::sqlite
