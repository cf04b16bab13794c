#include "adapters/c/c_column_family.h"

#include <utility>

#include "adapters/c/c_error.h"
#include "adapters/common/c_memory.h"

using nacre::ColumnFamilyDescriptor;
using nacre::ColumnFamilyHandle;
using nacre::DB;
using nacre::Status;
using nacre::Succeeded;

nacre_column_family_handle_t* nacre::NewHandle(DB* db, ColumnFamilyHandle* family) {
  return std::make_unique<nacre_column_family_handle_t>(nacre_column_family_handle_t{db, family})
      .release();
}

Status nacre::DescribeFamilies(int count, const char* const* names,
                               const nacre_options_t* const* options,
                               std::vector<ColumnFamilyDescriptor>* families) {
  for (int i = 0; i < count; ++i) {
    if (!options[i]->invalid.ok()) return options[i]->invalid;
    families->emplace_back(names[i], options[i]->rep);
  }
  return Status::OK();
}

nacre_t* nacre_open_column_families(const nacre_options_t* options, const char* name,
                                    int num_families, const char* const* family_names,
                                    const nacre_options_t* const* family_options,
                                    nacre_column_family_handle_t** handles, char** errptr) {
  return nacre::OpenDatabaseFamilies(options, num_families, family_names, family_options, handles,
                                     errptr, [&](const auto& families, auto* opened, auto* db) {
                                       return DB::Open(options->rep, name, families, opened, db);
                                     });
}

nacre_t* nacre_open_for_read_only_column_families(const nacre_options_t* options, const char* name,
                                                  int num_families, const char* const* family_names,
                                                  const nacre_options_t* const* family_options,
                                                  nacre_column_family_handle_t** handles,
                                                  unsigned char error_if_wal_file_exists,
                                                  char** errptr) {
  return nacre::OpenDatabaseFamilies(options, num_families, family_names, family_options, handles,
                                     errptr, [&](const auto& families, auto* opened, auto* db) {
                                       return DB::OpenForReadOnly(options->rep, name, families,
                                                                  opened, db,
                                                                  error_if_wal_file_exists != 0);
                                     });
}

nacre_t* nacre_open_as_secondary_column_families(const nacre_options_t* options, const char* name,
                                                 int num_families, const char* const* family_names,
                                                 const nacre_options_t* const* family_options,
                                                 nacre_column_family_handle_t** handles,
                                                 char** errptr) {
  return nacre::OpenDatabaseFamilies(options, num_families, family_names, family_options, handles,
                                     errptr, [&](const auto& families, auto* opened, auto* db) {
                                       return DB::OpenAsSecondary(options->rep, name, families,
                                                                  opened, db);
                                     });
}

char** nacre_list_column_families(const nacre_options_t* options, const char* name, size_t* count,
                                  char** errptr) {
  *count = 0;
  std::vector<std::string> names;
  if (!Succeeded(options->invalid, errptr) ||
      !Succeeded(DB::ListColumnFamilies(options->rep, name, &names), errptr)) {
    return nullptr;
  }
  return nacre::CopyNames(names, count);
}

void nacre_list_column_families_destroy(char** names, size_t count) {
  nacre::FreeNames(names, count);
}

nacre_column_family_handle_t* nacre_create_column_family(nacre_t* db,
                                                         const nacre_options_t* family_options,
                                                         const char* family_name, char** errptr) {
  ColumnFamilyHandle* made = nullptr;
  if (!Succeeded(family_options->invalid, errptr) ||
      !Succeeded(db->rep->CreateColumnFamily(family_options->rep, family_name, &made), errptr)) {
    return nullptr;
  }
  return nacre::NewHandle(db->rep.get(), made);
}

void nacre_drop_column_family(nacre_t* db, nacre_column_family_handle_t* family, char** errptr) {
  (void)Succeeded(db->rep->DropColumnFamily(nacre::FamilyOf(family)), errptr);
}

void nacre_column_family_handle_destroy(nacre_column_family_handle_t* family) {
  const std::unique_ptr<nacre_column_family_handle_t> destroyed(family);
  if (destroyed != nullptr) (void)destroyed->db->DestroyColumnFamilyHandle(destroyed->rep);
}

uint32_t nacre_column_family_handle_get_id(const nacre_column_family_handle_t* family) {
  return family == nullptr ? 0 : family->rep->GetID();
}

char* nacre_column_family_handle_get_name(const nacre_column_family_handle_t* family,
                                          size_t* name_size) {
  const std::string& name =
      family == nullptr ? nacre::kDefaultColumnFamilyName : family->rep->GetName();
  *name_size = name.size();
  return nacre::CopyToCString(name);
}
