/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the model's tables. Each returns 0 or a negative errno with a message. */
#ifndef WAFFLE_EXPORT_SQLITE_ROWS_INTERNAL_H
#define WAFFLE_EXPORT_SQLITE_ROWS_INTERNAL_H

#include "export/sqlite/database_internal.h"
#include "model/model.h"
#include "util/memory.h"

int process_rows(struct database *database, const struct model *model, struct error *err);
int thread_rows(struct database *database, const struct model *model, struct error *err);
int site_rows(struct database *database, const struct model *model, struct error *err);
int span_rows(struct database *database, const struct model *model, struct error *err);
int event_rows(struct database *database, const struct model *model, struct error *err);
int value_rows(struct database *database, const struct model *model, struct error *err);
int link_rows(struct database *database, const struct model *model, struct error *err);
int wait_rows(struct database *database, const struct model *model, struct error *err);

#endif
