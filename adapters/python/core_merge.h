#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "nacre/merge_operator.h"

namespace nacre::python {

/// An operator that calls `function(key, value or None, operands)`, which answers the new value.
/// What it raises goes to sys.unraisablehook, and the value cannot be made then (`Corruption`).
///
/// A thread that reads or compacts takes the interpreter's lock for each call. No thread waits for
/// Nacre with that lock, so the two kinds of waiting cannot meet in a circle. Memory nodes do not
/// know the operator: this process runs the compactions that need it.
std::shared_ptr<MergeOperator> MakePythonMerge(pybind11::object function);

}  // namespace nacre::python
