/* cli_view_serve.c - serves a page on the loopback address. Requests are handled one after the other, because there is
 * only one user; but connections on which a browser sends nothing for a while do not block others. */
#include "cli_view_page.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { REQUEST = 8192, SECONDS = 5, GUESTS = 16 };

/* A connection, until its request has arrived, and after the response until the browser has received all of it. */
typedef struct guest {
    int client;
    bool answered;
    double until; /* when it is closed */
    size_t size;
    char request[REQUEST + 1];
} guest;

/* The data for responses. */
typedef struct page_source {
    uint16_t port;
    view_make *make;
    void *user;
} page_source;

static bool send_all(int to, const char *bytes, size_t size)
{
    for (size_t at = 0; at < size;) {
        const ssize_t n = send(to, bytes + at, size - at, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

static void answer(int to, int status, const char *body, size_t size, bool with_body)
{
    static const struct {
        int status;
        const char *text;
    } lines[] = { { 200, "OK" },
                  { 403, "Forbidden" },
                  { 404, "Not Found" },
                  { 405, "Method Not Allowed" },
                  { 500, "Internal Server Error" } };
    const char *text = "";
    char head[400];
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (lines[i].status == status)
            text = lines[i].text;
    const int n = snprintf(head, sizeof head,
                           "HTTP/1.1 %d %s\r\nContent-Type: text/%s; charset=utf-8\r\nContent-Length: %zu\r\n"
                           "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n"
                           "Cross-Origin-Resource-Policy: same-origin\r\nConnection: close\r\n\r\n",
                           status, text, status == 200 ? "html" : "plain", body ? size : 0);
    if (send_all(to, head, (size_t)n) && body && with_body)
        (void)send_all(to, body, size);
}

static void answer_guest(guest *g, const page_source *from)
{
    bool with_body;
    int status = cli_view_request(onx_str_make(g->request, g->size), from->port, &with_body);
    char *page = NULL;
    size_t page_size = 0;
    if (status == 200 && !from->make(from->user, &page, &page_size))
        status = 500;
    answer(g->client, status, page, page_size, with_body);
    free(page);
    /* Reads remaining data of the browser, because closing with unread data would discard the response. */
    shutdown(g->client, SHUT_WR);
    g->answered = true;
    g->until = cli_now() + SECONDS;
}

/* Reads available data, and responds when the head of the request is complete. False: the connection is finished. */
static bool hear(guest *g, const page_source *from)
{
    if (g->answered)
        g->size = 0;
    const ssize_t n = recv(g->client, g->request + g->size, REQUEST - g->size, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    if (n <= 0)
        return false;
    g->size += (size_t)n;
    g->request[g->size] = 0; /* there is room */
    if (!g->answered && memmem(g->request, g->size, "\r\n\r\n", 4))
        answer_guest(g, from);
    return g->answered || g->size < REQUEST;
}

/* Accepts a connection; if there are too many, the one with the earliest deadline is closed. */
static void welcome(guest *guests, uint32_t *count, int client)
{
    const struct timeval patience = { .tv_sec = SECONDS };
    uint32_t at = *count;
    if (at == GUESTS) {
        at = 0;
        for (uint32_t i = 1; i < GUESTS; i++)
            if (guests[i].until < guests[at].until)
                at = i;
        close(guests[at].client);
    } else {
        ++*count;
    }
    (void)setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    guests[at].client = client;
    guests[at].answered = false;
    guests[at].size = 0;
    guests[at].until = cli_now() + SECONDS;
}

/* Waits for activity on any connection. Returns an error number when serving ends. */
static int receive(int listener, guest *guests, const page_source *from)
{
    uint32_t count = 0;
    for (;;) {
        struct pollfd ears[GUESTS + 1] = { { .fd = listener, .events = POLLIN } };
        for (uint32_t i = 0; i < count; i++)
            ears[i + 1] = (struct pollfd){ .fd = guests[i].client, .events = POLLIN };
        if (poll(ears, count + 1, count ? 200 : -1) < 0 && errno != EINTR)
            return errno;
        for (uint32_t i = count; i-- > 0;) {
            const bool stays = ears[i + 1].revents ? hear(&guests[i], from) : true;
            if (stays && cli_now() < guests[i].until)
                continue;
            close(guests[i].client);
            guests[i] = guests[--count];
        }
        const int client = ears[0].revents ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
        if (client >= 0)
            welcome(guests, &count, client);
        else if (ears[0].revents && errno != EINTR && errno != ECONNABORTED && errno != EAGAIN)
            return errno;
    }
}

int cli_view_serve(cli_call *call, uint16_t port, view_make *make, void *user)
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_port = htons(port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct sockaddr *address = (struct sockaddr *)(void *)&at;
    socklen_t size = sizeof at;
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(listener, address, size) != 0 || listen(listener, 16) != 0 || getsockname(listener, address, &size) != 0) {
        if (listener >= 0)
            close(listener);
        return cli_error(call, "127.0.0.1:%u: %s", port, strerror(errno));
    }
    printf("http://127.0.0.1:%u/\n", ntohs(at.sin_port));
    fflush(stdout);
    guest *guests = calloc(GUESTS, sizeof *guests);
    const page_source from = { ntohs(at.sin_port), make, user };
    const int why = guests ? receive(listener, guests, &from) : ENOMEM;
    free(guests);
    close(listener);
    return cli_error(call, "waiting for requests: %s", strerror(why));
}
