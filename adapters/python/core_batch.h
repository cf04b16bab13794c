#pragma once

#include <pybind11/pybind11.h>

#include "adapters/python/core_bytes.h"
#include "adapters/python/core_database.h"
#include "adapters/python/core_error.h"
#include "nacre/write_batch.h"

namespace nacre::python {

/// A batch, which must not change while a call writes it. The Python files ensure that the families
/// belong to the database. All calls hold the interpreter's lock.
class Batch {
 public:
  void Put(const pybind11::handle& key, const pybind11::handle& value, const FamilyPtr& family) {
    const ByteView key_bytes(key);
    const ByteView value_bytes(value);
    InFamily in(family);
    Check(Changeable()->Put(&in, key_bytes.slice(), value_bytes.slice()));
  }
  void Merge(const pybind11::handle& key, const pybind11::handle& operand,
             const FamilyPtr& family) {
    const ByteView key_bytes(key);
    const ByteView operand_bytes(operand);
    InFamily in(family);
    Check(Changeable()->Merge(&in, key_bytes.slice(), operand_bytes.slice()));
  }
  void Delete(const pybind11::handle& key, const FamilyPtr& family) {
    const ByteView bytes(key);
    InFamily in(family);
    Check(Changeable()->Delete(&in, bytes.slice()));
  }
  void SingleDelete(const pybind11::handle& key, const FamilyPtr& family) {
    const ByteView bytes(key);
    InFamily in(family);
    Check(Changeable()->SingleDelete(&in, bytes.slice()));
  }
  void DeleteRange(const pybind11::handle& start, const pybind11::handle& stop,
                   const FamilyPtr& family) {
    const ByteView first(start);
    const ByteView last(stop);
    InFamily in(family);
    Check(Changeable()->DeleteRange(&in, first.slice(), last.slice()));
  }
  void Clear() { Changeable()->Clear(); }
  uint32_t Count() const { return batch_.Count(); }

  void Write(Database* db, const WriteOptions& options) {
    WriteBatch* batch = Changeable();
    writing_ = true;
    struct Finally {
      bool* writing;
      ~Finally() { *writing = false; }
    } finally{&writing_};
    db->CheckWith([&](DB* open) { return open->Write(options, batch); });
  }

 private:
  /// A family by its id, which is all that a batch keeps of it: the handle may be gone.
  class InFamily final : public ColumnFamilyHandle {
   public:
    explicit InFamily(const FamilyPtr& family)
        : name_(family == nullptr ? kDefaultColumnFamilyName : family->name()),
          id_(family == nullptr ? 0 : family->id()) {}
    const std::string& GetName() const override { return name_; }
    uint32_t GetID() const override { return id_; }

   private:
    const std::string name_;
    const uint32_t id_;
  };

  WriteBatch* Changeable() {
    if (writing_) throw StatusFailure(Status::Busy("another thread is writing this batch"));
    return &batch_;
  }

  WriteBatch batch_;
  bool writing_ = false;  ///< Guarded by the interpreter's lock.
};

}  // namespace nacre::python
