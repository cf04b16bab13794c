#include "adapters/python/core_merge.h"

#include <string>
#include <utility>

#include "adapters/python/core_bytes.h"

namespace nacre::python {

namespace py = pybind11;

namespace {

class PythonMerge final : public MergeOperator {
 public:
  /// Requires the interpreter's lock.
  explicit PythonMerge(py::object function)
      : function_(std::move(function)),
        // Never the name of an operator that nodes know.
        name_("python." +
              std::string(py::str(py::getattr(function_, "__qualname__", py::str("operator"))))) {}
  ~PythonMerge() override {
    const py::gil_scoped_acquire acquire;  // The last user may be any thread.
    function_.release().dec_ref();
  }

  bool FullMergeV2(const MergeOperationInput& in, MergeOperationOutput* out) const override {
    const py::gil_scoped_acquire acquire;
    try {
      py::list operands;
      for (const Slice& operand : in.operand_list) operands.append(ToBytes(operand));
      const py::object value =
          in.existing_value == nullptr ? py::none() : py::object(ToBytes(*in.existing_value));
      const py::object result = function_(ToBytes(in.key), value, operands);
      out->new_value = ByteView(result).slice().ToStringView();
      return true;
    } catch (py::error_already_set& raised) {
      raised.discard_as_unraisable("a merge operator of nacre");
    }
    return false;
  }
  const char* Name() const override { return name_.c_str(); }

 private:
  py::object function_;
  const std::string name_;
};

}  // namespace

std::shared_ptr<MergeOperator> MakePythonMerge(py::object function) {
  return std::make_shared<PythonMerge>(std::move(function));
}

}  // namespace nacre::python
