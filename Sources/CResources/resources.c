#include "CResources.h"

#include <string.h>

// #embed costs no build time. SwiftPM turns such files into Swift arrays, which took four minutes of each build. #embed is
// part of C23; clang also supports it in earlier versions of C.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char asyncapi_yaml[] = {
#embed "../../asyncapi.yaml"
};
static const unsigned char openapi_yaml[] = {
#embed "../../openapi.yaml"
};
static const unsigned char posts_yaml[] = {
#embed "../../Deploy/tables/posts.yaml"
};
static const unsigned char school_yaml[] = {
#embed "../../Deploy/tables/school.yaml"
};
static const unsigned char todo_yaml[] = {
#embed "../../Deploy/tables/todo.yaml"
};
static const unsigned char bellhop_core_js[] = {
#embed "../Service/Features/ClientLibrary/Files/bellhop-core.js"
};
static const unsigned char bellhop_features_js[] = {
#embed "../Service/Features/ClientLibrary/Files/bellhop-features.js"
};
static const unsigned char bellhop_offline_js[] = {
#embed "../Service/Features/ClientLibrary/Files/bellhop-offline.js"
};
static const unsigned char bellhop_push_js[] = {
#embed "../Service/Features/ClientLibrary/Files/bellhop-push.js"
};
static const unsigned char bellhop_sw_js[] = {
#embed "../Service/Features/ClientLibrary/Files/bellhop-sw.js"
};
static const unsigned char bellhop_tabs_js[] = {
#embed "../Service/Features/ClientLibrary/Files/bellhop-tabs.js"
};
static const unsigned char bellhop_worker_js[] = {
#embed "../Service/Features/ClientLibrary/Files/bellhop-worker.js"
};
static const unsigned char bellhop_js[] = {
#embed "../Service/Features/ClientLibrary/Files/bellhop.js"
};
static const unsigned char app_js[] = {
#embed "../console/app.js"
};
static const unsigned char cards_js[] = {
#embed "../console/cards.js"
};
static const unsigned char console_css[] = {
#embed "../console/console.css"
};
static const unsigned char console_html[] = {
#embed "../console/console.html"
};
static const unsigned char docs_css[] = {
#embed "../console/docs.css"
};
static const unsigned char docs_html[] = {
#embed "../console/docs.html"
};
static const unsigned char docs_js[] = {
#embed "../console/docs.js"
};
static const unsigned char dom_js[] = {
#embed "../console/dom.js"
};
static const unsigned char events_js[] = {
#embed "../console/events.js"
};
static const unsigned char markdown_js[] = {
#embed "../console/markdown.js"
};
static const unsigned char notify_js[] = {
#embed "../console/notify.js"
};
static const unsigned char operations_js[] = {
#embed "../console/operations.js"
};
static const unsigned char plots_js[] = {
#embed "../console/plots.js"
};
static const unsigned char places_js[] = {
#embed "../console/places.js"
};
static const unsigned char publish_js[] = {
#embed "../console/publish.js"
};
static const unsigned char session_js[] = {
#embed "../console/session.js"
};
static const unsigned char shapes_js[] = {
#embed "../console/shapes.js"
};
static const unsigned char status_js[] = {
#embed "../console/status.js"
};
static const unsigned char tools_js[] = {
#embed "../console/tools.js"
};
static const unsigned char try_js[] = {
#embed "../console/try.js"
};

static const struct {
    const char *name;
    const unsigned char *bytes;
    size_t count;
} resources[] = {
#define RESOURCE(name, bytes) {name, bytes, sizeof bytes}
    RESOURCE("asyncapi.yaml", asyncapi_yaml),
    RESOURCE("openapi.yaml", openapi_yaml),
    RESOURCE("posts.yaml", posts_yaml),
    RESOURCE("school.yaml", school_yaml),
    RESOURCE("todo.yaml", todo_yaml),
    RESOURCE("bellhop-core.js", bellhop_core_js),
    RESOURCE("bellhop-features.js", bellhop_features_js),
    RESOURCE("bellhop-offline.js", bellhop_offline_js),
    RESOURCE("bellhop-push.js", bellhop_push_js),
    RESOURCE("bellhop-sw.js", bellhop_sw_js),
    RESOURCE("bellhop-tabs.js", bellhop_tabs_js),
    RESOURCE("bellhop-worker.js", bellhop_worker_js),
    RESOURCE("bellhop.js", bellhop_js),
    RESOURCE("app.js", app_js),
    RESOURCE("cards.js", cards_js),
    RESOURCE("console.css", console_css),
    RESOURCE("console.html", console_html),
    RESOURCE("docs.css", docs_css),
    RESOURCE("docs.html", docs_html),
    RESOURCE("docs.js", docs_js),
    RESOURCE("dom.js", dom_js),
    RESOURCE("events.js", events_js),
    RESOURCE("markdown.js", markdown_js),
    RESOURCE("notify.js", notify_js),
    RESOURCE("operations.js", operations_js),
    RESOURCE("plots.js", plots_js),
    RESOURCE("places.js", places_js),
    RESOURCE("publish.js", publish_js),
    RESOURCE("session.js", session_js),
    RESOURCE("shapes.js", shapes_js),
    RESOURCE("status.js", status_js),
    RESOURCE("tools.js", tools_js),
    RESOURCE("try.js", try_js),
};

const unsigned char *cresources_find(const char *name, size_t *count) {
    for (size_t index = 0; index < sizeof resources / sizeof *resources; index++) {
        if (strcmp(resources[index].name, name) == 0) {
            *count = resources[index].count;
            return resources[index].bytes;
        }
    }
    return NULL;
}
