/* cli_view_serve.c - a page on the loopback address. One request at a time: there is one reader. */
#include "cli_view_page.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { REQUEST = 8192, SECONDS = 5 };

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

/* The head of a request; false when it is too long, or its sender does not complete it. */
static bool receive(int from, char *buf, size_t *size)
{
    const double end = cli_now() + SECONDS;
    for (*size = 0; *size < REQUEST && cli_now() < end;) {
        const ssize_t n = recv(from, buf + *size, REQUEST - *size, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        *size += (size_t)n;
        buf[*size] = 0; /* there is room */
        if (memmem(buf, *size, "\r\n\r\n", 4))
            return true;
    }
    return false;
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

static void serve_one(int client, uint16_t port, view_make *make, void *user)
{
    char request[REQUEST + 1];
    size_t size;
    if (!receive(client, request, &size))
        return;
    bool with_body;
    int status = cli_view_request(onx_str_make(request, size), port, &with_body);
    char *page = NULL;
    size_t page_size = 0;
    if (status == 200 && !make(user, &page, &page_size))
        status = 500;
    answer(client, status, page, page_size, with_body);
    free(page);
    /* What the browser still sends is read, or closing would take the answer back. */
    const double end = cli_now() + SECONDS;
    shutdown(client, SHUT_WR);
    while (cli_now() < end && recv(client, request, REQUEST, 0) > 0)
        ;
}

int cli_view_serve(cli_call *call, uint16_t port, view_make *make, void *user)
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_port = htons(port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct sockaddr *address = (struct sockaddr *)(void *)&at;
    socklen_t size = sizeof at;
    const struct timeval patience = { .tv_sec = SECONDS };
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(listener, address, size) != 0 || listen(listener, 16) != 0 || getsockname(listener, address, &size) != 0) {
        if (listener >= 0)
            close(listener);
        return cli_error(call, "127.0.0.1:%u: %s", port, strerror(errno));
    }
    printf("http://127.0.0.1:%u/\n", ntohs(at.sin_port));
    fflush(stdout);
    for (;;) {
        const int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (client < 0)
            break;
        (void)setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        (void)setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        serve_one(client, ntohs(at.sin_port), make, user);
        close(client);
    }
    const int why = errno;
    close(listener);
    return cli_error(call, "waiting for requests: %s", strerror(why));
}
