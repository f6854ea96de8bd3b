// Push messages to this browser: the button in the bar, if the service sends push messages to browsers.
import { $, show, write } from "./dom.js";
import { onSession } from "./session.js";

const texts = {
  off: "Notify me on this device", asking: "Waiting for your answer", registering: "Registering this device",
  on: "Stop notifications here", denied: "Allow notifications in the browser",
  refused: "Notifications failed. Try again",
};
const hints = {
  denied: "Notifications are blocked. Allow them for this page in the settings of the browser, then click here.",
  on: "This device shows notifications while the page is closed.",
};

onSession((bell) => {
  let isOffered = false;

  function draw() {
    const { status, problem } = bell.push.get();
    const button = $("notify");
    show(button, isOffered && status in texts);
    write(button, texts[status] ?? "");
    button.disabled = ["asking", "registering"].includes(status);
    button.title = problem?.detail || hints[status] || "";
  }

  async function change() {
    if (bell.push.get().status === "on") await bell.push.disable();
    // The worker beside the page, wherever a proxy has put both.
    else await bell.push.enable({ serviceWorker: new URL("../bellhop-sw.js", import.meta.url).href });
  }

  bell.get("/v1/config").then(({ body }) => {
    isOffered = Boolean(body.push?.webPushKey);
    draw();
  }).catch(() => {});
  const stop = bell.push.subscribe(draw);
  $("notify").addEventListener("click", change);
  draw();
  return () => {
    stop();
    $("notify").removeEventListener("click", change);
    show("notify", false);
  };
});
