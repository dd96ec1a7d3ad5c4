// SPDX-License-Identifier: Apache-2.0
// Browsers start no workers from pages that are opened as files. The search of the site runs in a
// worker. On such pages, this class runs the script of the worker in a hidden frame instead. The
// script recognises the name IFrameWorker: its importScripts then returns a promise.
if (location.protocol === "file:") {
  window.IFrameWorker = class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inner = this.frame.contentWindow;
      const load = (source) => new Promise((resolve, reject) => {
        const script = inner.document.createElement("script");
        script.src = source;
        script.onload = resolve;
        script.onerror = reject;
        inner.document.body.append(script);
      });
      inner.importScripts = (...sources) =>
        sources.reduce((before, source) => before.then(() => load(source)), Promise.resolve());
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.ready = load(new URL(url, location).href);
      this.addEventListener("message", (event) => this.onmessage?.(event));
    }

    postMessage(data) {
      const inner = this.frame.contentWindow;
      this.ready.then(() => inner.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
