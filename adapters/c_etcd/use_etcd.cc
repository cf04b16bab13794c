#include "nacre/c_etcd.h"
#include "nacre/utilities/etcd.h"

void nacre_use_etcd(void) { nacre::UseEtcd(); }
