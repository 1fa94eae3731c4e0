/*
 * The handlers of POST (handler.h), by the end of their path.
 */
#ifndef PULLET_CONTROL_POST_H
#define PULLET_CONTROL_POST_H

#include "control/handler.h"

void post_refresh(struct control *c, struct httpd_request *r, struct config *config);
void post_rollback(struct control *c, struct httpd_request *r, struct config *config);
void post_override(struct control *c, struct httpd_request *r, struct config *config);
void post_pin(struct control *c, struct httpd_request *r, struct config *config);
void post_unpin(struct control *c, struct httpd_request *r, struct config *config);
void post_suspend(struct control *c, struct httpd_request *r, struct config *config);
void post_resume(struct control *c, struct httpd_request *r, struct config *config);

#endif
