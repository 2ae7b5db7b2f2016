/** Runs after a frame was painted: its message is handled when layout and painting are done. */
const AFTER_FRAME = `
const afterFrame = (call) => requestAnimationFrame((time) => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => call(time);
  port2.postMessage(null);
});`;

/**
 * A script whose `window.shownMs` resolves to the time from the navigation until the last row has the words and is
 * visible.
 */
export function watchForWords(words: string): string {
  return watchFor(
    "shownMs",
    `() => {
  const row = [...document.querySelectorAll(".transcript-row")].at(-1);
  if (!row?.textContent.includes(${JSON.stringify(words)})) return false;
  const view = document.querySelector(".transcript-scroller").getBoundingClientRect();
  const { top, bottom } = row.getBoundingClientRect();
  return top >= view.top && bottom <= view.bottom;
}`,
  );
}

/** A script whose `window.overviewMs` resolves to the time from the navigation until the first page shows the latest sessions. */
export function watchForOverview(): string {
  return watchFor("overviewMs", `() => document.querySelector(".home-session") !== null`);
}

/** A script whose `window.drawnMs` resolves to the time from the navigation until the tree has elements. */
export function watchForTree(): string {
  return watchFor("drawnMs", `() => document.querySelector(".tree-item") !== null`);
}

function watchFor(name: string, condition: string): string {
  return `(() => {${AFTER_FRAME}
const isThere = ${condition};
window.${name} = new Promise((resolve) => {
  const look = () => {
    if (isThere()) resolve(performance.now());
    else afterFrame(look);
  };
  afterFrame(look);
});
})();`;
}

/** The minimum height of a gap; the distance between rows is smaller. */
const GAP_PX = 24;

/**
 * A script that defines `window.frameWatch`: `begin(looks)` starts to observe all frames, and `end()` returns their
 * durations and, if it observes the transcript, which frames had a gap. A gap is an area of the transcript's viewport,
 * at least 24 px high, without a rendered row: because there is no row, earlier turns are still loading there, or the
 * row is still empty.
 */
export const FRAME_WATCH: string = `(() => {${AFTER_FRAME}
const firstInView = (rows, top) => {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle].getBoundingClientRect().bottom < top) low = middle + 1;
    else high = middle;
  }
  return low;
};
const hasGap = () => {
  const scroller = document.querySelector(".transcript-scroller");
  const rows = document.querySelectorAll(".transcript-row");
  const { top, bottom } = scroller.getBoundingClientRect();
  const first = firstInView(rows, top);
  const begins = first === 0 && document.querySelector(".transcript-top").textContent.includes("begins here");
  let covered = begins ? rows[0].getBoundingClientRect().top : top;
  for (let index = first; index < rows.length && covered < bottom; index++) {
    const box = rows[index].getBoundingClientRect();
    if (box.top - covered >= ${GAP_PX}) return true;
    const isDrawn = rows[index].firstElementChild?.checkVisibility({ contentVisibilityAuto: true }) === true;
    if (!isDrawn && Math.min(box.bottom, bottom) - Math.max(box.top, top) >= ${GAP_PX}) return true;
    covered = box.bottom;
  }
  const left = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
  return bottom - covered >= ${GAP_PX} && left >= ${GAP_PX};
};
let watching = null;
window.frameWatch = {
  begin: (looks) => {
    const watch = (watching = { times: [], gaps: [], last: null });
    const look = (time) => {
      if (watching !== watch) return;
      if (watch.last !== null) watch.times.push(time - watch.last);
      watch.last = time;
      if (looks) watch.gaps.push(hasGap());
      afterFrame(look);
    };
    afterFrame(look);
  },
  end: () => {
    const { times, gaps } = watching;
    watching = null;
    return { times, gaps };
  },
};
})();`;

/**
 * A script that adds to `window.keyTimesMs` the time from each key until the tree with another selection was rendered.
 */
export const KEY_WATCH: string = `(() => {${AFTER_FRAME}
window.keyTimesMs = [];
let pressedAt = null;
addEventListener("keydown", ({ timeStamp }) => { pressedAt = timeStamp; }, { capture: true });
new MutationObserver(() => {
  if (pressedAt === null) return;
  const from = pressedAt;
  pressedAt = null;
  afterFrame(() => window.keyTimesMs.push(performance.now() - from));
}).observe(document, { subtree: true, attributes: true, attributeFilter: ["aria-activedescendant"] });
})();`;
