#include "adapters/c/c_transaction_types.h"

using nacre::Destroy;

nacre_transactiondb_options_t* nacre_transactiondb_options_create(void) {
  return std::make_unique<nacre_transactiondb_options_t>().release();
}

void nacre_transactiondb_options_destroy(nacre_transactiondb_options_t* options) {
  Destroy(options);
}

void nacre_transactiondb_options_set_max_num_locks(nacre_transactiondb_options_t* options,
                                                   int64_t value) {
  options->rep.max_num_locks = value;
}

void nacre_transactiondb_options_set_num_stripes(nacre_transactiondb_options_t* options,
                                                 size_t value) {
  options->rep.num_stripes = value;
}

void nacre_transactiondb_options_set_transaction_lock_timeout(
    nacre_transactiondb_options_t* options, int64_t value) {
  options->rep.transaction_lock_timeout = value;
}

void nacre_transactiondb_options_set_default_lock_timeout(nacre_transactiondb_options_t* options,
                                                          int64_t value) {
  options->rep.default_lock_timeout = value;
}

nacre_transaction_options_t* nacre_transaction_options_create(void) {
  return std::make_unique<nacre_transaction_options_t>().release();
}

void nacre_transaction_options_destroy(nacre_transaction_options_t* options) { Destroy(options); }

void nacre_transaction_options_set_set_snapshot(nacre_transaction_options_t* options,
                                                unsigned char value) {
  options->rep.set_snapshot = value != 0;
}

void nacre_transaction_options_set_deadlock_detect(nacre_transaction_options_t* options,
                                                   unsigned char value) {
  options->rep.deadlock_detect = value != 0;
}

void nacre_transaction_options_set_lock_timeout(nacre_transaction_options_t* options,
                                                int64_t value) {
  options->rep.lock_timeout = value;
}

void nacre_transaction_options_set_expiration(nacre_transaction_options_t* options, int64_t value) {
  options->rep.expiration = value;
}

void nacre_transaction_options_set_deadlock_detect_depth(nacre_transaction_options_t* options,
                                                         int64_t value) {
  options->rep.deadlock_detect_depth = value;
}

void nacre_transaction_options_set_max_write_batch_size(nacre_transaction_options_t* options,
                                                        size_t value) {
  options->rep.max_write_batch_size = value;
}

void nacre_transaction_options_set_skip_prepare(nacre_transaction_options_t* options,
                                                unsigned char value) {
  options->rep.skip_prepare = value != 0;
}

nacre_optimistictransaction_options_t* nacre_optimistictransaction_options_create(void) {
  return std::make_unique<nacre_optimistictransaction_options_t>().release();
}

void nacre_optimistictransaction_options_destroy(nacre_optimistictransaction_options_t* options) {
  Destroy(options);
}

void nacre_optimistictransaction_options_set_set_snapshot(
    nacre_optimistictransaction_options_t* options, unsigned char value) {
  options->rep.set_snapshot = value != 0;
}
