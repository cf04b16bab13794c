#include "sqlite/declaration.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "sqlite/declaration_tokens.h"

namespace nacre::sqlite {
namespace {

std::string Quoted(const std::string& name) {
  std::string quoted = "\"";
  for (char c : name) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

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

class Parser {
 public:
  explicit Parser(Declaration* declaration) : declaration_(declaration) {}

  Status Add(const std::string& argument) {
    argument_ = argument;
    at_ = 0;
    NACRE_RETURN_IF_ERROR(Tokenize(argument, &tokens_));
    if (tokens_.size() >= 2 && tokens_[1].Is("=")) return AddOption();
    declaration_->arguments.push_back(argument);
    if (Take("PRIMARY")) {
      if (!Take("KEY")) return Wrong("KEY is missing after PRIMARY");
      return AddPrimaryKey(&declaration_->primary_key);
    }
    if (Peek().Is("UNIQUE") && Peek(1).Is("(")) return AddIndex(/*unique=*/true);
    if (Peek().Is("INDEX") && (Peek(1).Is("(") || Peek(2).Is("("))) return AddIndex(false);
    for (const char* word : {"CHECK", "FOREIGN", "CONSTRAINT"}) {
      if (Peek().Is(word)) return Lacking(word);
    }
    return AddColumn();
  }

  Status Finish() {
    if (declaration_->database.pool.empty()) {
      return Status::InvalidArgument("pool='...' is missing (see nacre/pool.h)");
    }
    if (declaration_->columns.empty()) return Status::InvalidArgument("no column is declared");
    for (int column : declaration_->primary_key) {
      declaration_->columns[static_cast<size_t>(column)].not_null = true;
    }
    return Status::OK();
  }

 private:
  const Token& Peek(size_t ahead = 0) const {
    static const Token kNone;
    return at_ + ahead < tokens_.size() ? tokens_[at_ + ahead] : kNone;
  }
  bool Take(const char* word) {
    if (!Peek().Is(word)) return false;
    ++at_;
    return true;
  }
  Status Wrong(const std::string& what) const {
    return Status::InvalidArgument(what + " in '" + argument_ + "'");
  }
  static Status Lacking(const std::string& what) {
    return Status::NotSupported(what + " has no effect on a virtual table, and is refused");
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

  Status ParseColumns(std::vector<int>* columns) {
    if (!Take("(")) return Wrong("( is missing");
    do {
      int column = 0;
      NACRE_RETURN_IF_ERROR(ColumnNumber(Peek().text, &column));
      if (std::find(columns->begin(), columns->end(), column) != columns->end()) {
        return Wrong("column '" + Peek().text + "' twice");
      }
      ++at_;
      columns->push_back(column);
      Take("ASC");
      if (Peek().Is("DESC") || Peek().Is("COLLATE")) return Lacking(Peek().text + " of a key");
    } while (Take(","));
    if (!Take(")")) return Wrong(") is missing");
    if (at_ != tokens_.size()) return Wrong("'" + Peek().text + "' is not understood");
    return Status::OK();
  }

  Status AddPrimaryKey(std::vector<int>* columns) {
    if (!columns->empty()) return Wrong("a second primary key");
    return ParseColumns(columns);
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
      declaration_->indexes.push_back({{number}, true});
      return Status::OK();
    }
    if (Take("PRIMARY")) {
      if (!Take("KEY")) return Wrong("KEY is missing after PRIMARY");
      if (!declaration_->primary_key.empty()) return Wrong("a second primary key");
      declaration_->primary_key = {number};
      Take("ASC");
      return Status::OK();
    }
    if (Take("COLLATE")) return ParseCollation(&column);
    return Lacking("'" + Peek().text + "' of a column");
  }

  Status ParseCollation(ColumnDeclaration* column) {
    if (Take("BINARY")) {
      column->collation = Collation::kBinary;
    } else if (Take("NOCASE")) {
      column->collation = Collation::kNoCase;
    } else if (Take("RTRIM")) {
      column->collation = Collation::kRightTrim;
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
  return primary_key.size() == 1 &&
         SameName(columns[static_cast<size_t>(primary_key[0])].type, "INTEGER");
}

std::string Declaration::CreateTable() const {
  std::string sql = "CREATE TABLE x(";
  for (const ColumnDeclaration& column : columns) {
    sql += Quoted(column.name) + ' ' + column.type;
    if (column.collation != Collation::kBinary) {
      sql.append(" COLLATE ").append(CollationName(column.collation));
    }
    sql += ", ";
  }
  if (HasRowid()) {
    sql.resize(sql.size() - 2);
    return sql + ')';
  }
  return sql + "\"nacre key\" BLOB HIDDEN NOT NULL PRIMARY KEY) WITHOUT ROWID";
}

std::string Declaration::Signature() const {
  const auto key = [](const char* kind, const std::vector<int>& numbers) {
    std::string text = kind;
    for (int number : numbers) text += ' ' + std::to_string(number);
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
  return text;
}

}  // namespace nacre::sqlite
