/*
 * The handlers of GET (handler.h), by the end of their path.
 */
#ifndef PULLET_CONTROL_GET_H
#define PULLET_CONTROL_GET_H

#include "control/handler.h"

void get_status(struct control *c, struct httpd_request *r, struct config *config);
void get_config(struct control *c, struct httpd_request *r, struct config *config);
void get_history(struct control *c, struct httpd_request *r, struct config *config);
void get_events(struct control *c, struct httpd_request *r, struct config *config);
void get_diff(struct control *c, struct httpd_request *r, struct config *config);
void get_explain(struct control *c, struct httpd_request *r, struct config *config);
void get_changes(struct control *c, struct httpd_request *r, struct config *config);
void get_page(struct control *c, struct httpd_request *r, struct config *config);
void get_livez(struct control *c, struct httpd_request *r, struct config *config);
void get_readyz(struct control *c, struct httpd_request *r, struct config *config);
void get_metrics(struct control *c, struct httpd_request *r, struct config *config);
void get_wait(struct control *c, struct httpd_request *r, struct config *config);

#endif
