#include "adapters/python/core_error.h"

#include "adapters/python/core_bytes.h"

namespace nacre::python {

namespace py = pybind11;

void RegisterErrors() {
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const StatusFailure& failure) {
      const py::object error = py::module_::import("nacre.errors")
                                   .attr("make")(failure.code(), ToText(Slice(failure.what())));
      PyErr_SetObject(py::type::handle_of(error).ptr(), error.ptr());
    }
  });
}

}  // namespace nacre::python
