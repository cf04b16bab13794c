#pragma once

#include <pybind11/pybind11.h>

#include "nacre/options.h"

namespace nacre::python {

/// Sets the options that `named` has, under their names in nacre/options.h: durations are seconds,
/// choices their names in small letters. TypeError for an unknown name or a value of another type,
/// InvalidArgument for an unknown choice.
void SetOptions(const pybind11::dict& named, Options* options);
/// The same of options of column families; others are unknown here.
void SetFamilyOptions(const pybind11::dict& named, ColumnFamilyOptions* options);

}  // namespace nacre::python
