/*
 * Runs in:   broodd
 * Trusts:    its operator (signals, configuration)
 * Blocks on: nothing while it serves; on the kernel's tear-down of killed zygotes when it ends
 *
 * Stopping, in order: no new connection, no new call; waiting calls are answered `lost`; running calls get the grace time; what runs after it
 * is killed and answered `lost`; answers are flushed for a moment; then everything below is killed and reaped.
 */
#include "supervisor/server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/call.h"
#include "supervisor/client.h"
#include "supervisor/listen.h"
#include "supervisor/log.h"
#include "supervisor/profile.h"
#include "supervisor/run.h"
#include "supervisor/worker.h"

#define FLUSH_US 2000000 /* for clients that do not read their last answers */

uint64_t sup_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void sup_timer_set(struct event *timer, uint64_t in_us)
{
	struct timeval in = {.tv_sec = (time_t)(in_us / 1000000), .tv_usec = (suseconds_t)(in_us % 1000000)};

	evtimer_add(timer, &in);
}

/* --- stopping --- */

static void on_flush_over(evutil_socket_t fd, short what, void *context)
{
	struct sup_server *server = context;

	(void)fd;
	(void)what;
	event_base_loopbreak(server->base);
}

static void on_grace_over(evutil_socket_t fd, short what, void *context)
{
	struct sup_server *server = context;
	struct sup_client *client;

	(void)fd;
	(void)what;
	sup_timer_set(server->flush_timer, FLUSH_US);
	TAILQ_FOREACH(client, &server->clients, link)
	{
		struct sup_call *call;

		while ((call = TAILQ_FIRST(&client->calls)) != NULL && call->worker)
			sup_worker_end_call(call->worker, BROOD_LOST,
					    "the supervisor is shutting down; the grace time is over");
	}
	sup_server_check_stopped(server);
}

static void answer_waiting(struct sup_client *client)
{
	static const struct sup_ending LOST = {.status = BROOD_LOST, .message = "the supervisor is shutting down"};
	struct sup_call *call, *next;

	for (call = TAILQ_FIRST(&client->calls); call && !client->dead; call = next) {
		next = TAILQ_NEXT(call, link);
		if (!call->worker)
			sup_call_finish(call, &LOST);
	}
}

void sup_server_stop(struct sup_server *server, const char *why)
{
	struct sup_client *client;

	if (server->stopping)
		return;
	server->stopping = true;
	sup_log(SUP_LOG_INFO, "stopping: %s; %zu calls are running", why, server->counters.running);
	sup_listen_stop(server);
	sup_timer_set(server->stop_timer, server->config->grace_ms * 1000);
	TAILQ_FOREACH(client, &server->clients, link)
	answer_waiting(client);
	sup_server_check_stopped(server);
}

void sup_server_check_stopped(struct sup_server *server)
{
	struct sup_client *client;

	if (!server->stopping || server->counters.open > 0)
		return;
	if (server->clients_count == 0) {
		event_base_loopbreak(server->base);
		return;
	}
	/* Each closes once it has taken its answers; the last to be freed comes back here. */
	evtimer_del(server->stop_timer);
	if (!evtimer_pending(server->flush_timer, NULL))
		sup_timer_set(server->flush_timer, FLUSH_US);
	TAILQ_FOREACH(client, &server->clients, link)
	sup_client_finish(client);
}

static void on_stop_signal(evutil_socket_t sig, short what, void *context)
{
	(void)what;
	sup_server_stop(context, sig == SIGTERM ? "SIGTERM" : "SIGINT");
}

/* --- reloading --- */

static int add_profile(struct sup_server *server, const struct sup_profile_config *config)
{
	struct sup_profile *profile = sup_profile_new(server, server->config, config);

	if (!profile) {
		sup_log(SUP_LOG_ERROR, "profile %s: out of memory", config->name);
		return -1;
	}
	/* A private supervisor is there for one program, which will not use every profile: it starts them on demand. */
	if (!server->stdio)
		sup_profile_start(profile);
	return 0;
}

static void on_reload_signal(evutil_socket_t sig, short what, void *context)
{
	struct sup_server *server = context;
	char error[SUP_CONFIG_ERROR_MAX];
	struct sup_config *old = server->config, *config;
	struct sup_profile *profile, *next;

	(void)sig;
	(void)what;
	if (server->stopping)
		return;
	config = sup_config_load(server->config_path, server->overrides, server->overrides_count, error);
	if (!config) {
		sup_log(SUP_LOG_ERROR, "SIGHUP: %s; the old configuration stays", error);
		return;
	}
	sup_log(SUP_LOG_INFO, "SIGHUP: configuration read again, zygotes are being replaced");
	server->config = config;
	sup_log_configure((enum sup_log_level)config->log_level, config->log_json);
	for (profile = TAILQ_FIRST(&server->profiles); profile; profile = next) {
		next = TAILQ_NEXT(profile, link);
		if (!profile->removed)
			sup_profile_reload(profile, config,
					   sup_config_profile(config, profile->name, strlen(profile->name)));
	}
	for (size_t i = 0; i < config->profiles_count; i++) {
		const char *name = config->profiles[i]->name;

		if (!sup_profile_find(server, name, strlen(name)))
			add_profile(server, config->profiles[i]);
	}
	sup_config_free(old);
}

/* --- the whole --- */

static struct event *watch_signal(struct sup_server *server, int sig, event_callback_fn handler)
{
	struct event *event = evsignal_new(server->base, sig, handler, server);

	if (event)
		evsignal_add(event, NULL);
	return event;
}

static struct event_base *base_new(bool any_file)
{
	struct event_config *config = event_config_new();
	struct event_base *base;

	if (!config)
		return NULL;
	event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
	/* epoll takes no regular files, which standard input may be. */
	if (any_file)
		event_config_require_features(config, EV_FEATURE_FDS);
	base = event_base_new_with_config(config);
	event_config_free(config);
	return base;
}

static void destroy(struct sup_server *server)
{
	struct sup_client *client;
	struct sup_profile *profile;

	server->stopping = true;
	sup_listen_stop(server);
	while ((client = TAILQ_FIRST(&server->clients)) != NULL)
		sup_client_destroy(client);
	while ((profile = TAILQ_FIRST(&server->profiles)) != NULL)
		sup_profile_free(profile);
	sup_buffer_free(&server->packed);
	free(server->scratch);
}

static int start(struct sup_server *server, char error[SUP_LISTEN_ERROR_MAX])
{
	for (size_t i = 0; i < server->config->profiles_count; i++) {
		if (add_profile(server, server->config->profiles[i]) < 0)
			return -1;
	}
	if (server->stdio) {
		if (sup_client_new(server, STDIN_FILENO, STDOUT_FILENO))
			return 0;
		snprintf(error, SUP_LISTEN_ERROR_MAX, "standard input and output cannot be watched");
		return -1;
	}
	if (sup_listen_start(server, error) < 0)
		return -1;
	sup_log(SUP_LOG_INFO, "listening on %s", server->config->socket);
	return 0;
}

int sup_server_run(struct sup_server *server, bool any_file, char error[SUP_LISTEN_ERROR_MAX])
{
	struct event *signals[3];
	int result = -1;

	snprintf(error, SUP_LISTEN_ERROR_MAX, "out of memory");
	TAILQ_INIT(&server->clients);
	TAILQ_INIT(&server->profiles);
	server->next_worker = 1;
	server->started_us = sup_now_us();
	server->scratch = malloc(SUP_SCRATCH);
	server->base = base_new(any_file);
	if (!server->scratch || !server->base) {
		free(server->scratch);
		return -1;
	}
	server->stop_timer = evtimer_new(server->base, on_grace_over, server);
	server->flush_timer = evtimer_new(server->base, on_flush_over, server);
	signals[0] = watch_signal(server, SIGTERM, on_stop_signal);
	signals[1] = watch_signal(server, SIGINT, on_stop_signal);
	signals[2] = watch_signal(server, SIGHUP, on_reload_signal);
	if (server->stop_timer && server->flush_timer && signals[0] && signals[1] && signals[2] &&
	    start(server, error) == 0) {
		event_base_dispatch(server->base);
		result = 0;
	}
	destroy(server);
	for (size_t i = 0; i < 3; i++) {
		if (signals[i])
			event_free(signals[i]);
	}
	if (server->stop_timer)
		event_free(server->stop_timer);
	if (server->flush_timer)
		event_free(server->flush_timer);
	event_base_free(server->base);
	return result;
}
