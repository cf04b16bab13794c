// A shared library that is no plug-in.

extern "C" int nacre_number_of_plugins() { return 0; }
