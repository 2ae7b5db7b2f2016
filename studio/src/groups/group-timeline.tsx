import { type ReactNode, useEffect, useRef } from "react";
import { visibleText } from "../markdown/visible-text.ts";
import { fullTime } from "../sessions/list/amounts.ts";
import { addressOf } from "../shell/route.ts";
import { colourClass } from "./agent-badge.tsx";
import type { GroupTurn } from "./group-turn.ts";
import type { Speaker } from "./speakers.ts";
import "./group-timeline.css";

const STEP = 22;
const LANE = 26;

/**
 * A timeline with a lane for each speaker and a mark for each turn. The list of turns below has the same content as
 * text.
 */
export function GroupTimeline({
  turns,
  speakers,
  sessionId,
}: {
  readonly turns: readonly GroupTurn[];
  readonly speakers: readonly Speaker[];
  readonly sessionId: string;
}): ReactNode {
  const lanes = new Map(speakers.map((speaker, index) => [speaker.agent, { speaker, y: (index + 0.5) * LANE }]));
  const marks = turns.filter(({ agent, role }) => agent !== null || role === "user");
  const width = Math.max(1, marks.length) * STEP;
  const height = speakers.length * LANE;
  const scroller = useRef<HTMLElement>(null);
  // Scrolls to the latest turn.
  useEffect(() => {
    if (width > 0) scroller.current?.scrollTo({ left: scroller.current.scrollWidth });
  }, [width]);
  return (
    <div className="group-timeline">
      <ol className="group-lanes" aria-hidden="true">
        {speakers.map(({ agent }) => (
          <li key={agent ?? ""}>{visibleText(agent ?? "People")}</li>
        ))}
      </ol>
      <section
        ref={scroller}
        className="group-track"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by keyboard.
        tabIndex={0}
        aria-label={`Timeline of speakers: ${marks.length} turns of ${speakers.length} speakers`}
      >
        <svg width={width} height={height} aria-hidden="true">
          {speakers.map(({ agent }, index) => (
            <line
              key={agent ?? ""}
              className="group-lane"
              x1={0}
              x2="100%"
              y1={(index + 0.5) * LANE}
              y2={(index + 0.5) * LANE}
            />
          ))}
          {marks.map((turn, index) => {
            const lane = lanes.get(turn.agent);
            if (lane === undefined) return null;
            const href = addressOf({ page: "session", id: sessionId, view: "talk", options: { entry: turn.id } });
            return (
              <a key={turn.id} href={href} tabIndex={-1}>
                <title>{titleOf(turn)}</title>
                <Mark turn={turn} x={(index + 0.5) * STEP} y={lane.y} colour={colourClass(lane.speaker)} />
              </a>
            );
          })}
        </svg>
      </section>
    </div>
  );
}

/** A full disc is a turn, a small one a step, a ring a pass, a square a failure. */
function Mark({
  turn: { kind },
  x,
  y,
  colour,
}: {
  readonly turn: GroupTurn;
  readonly x: number;
  readonly y: number;
  readonly colour: string;
}): ReactNode {
  if (kind === "failed") return <rect className="group-mark-failed" x={x - 6} y={y - 6} width={12} height={12} />;
  const hollow = kind === "passed" || kind === "refused";
  return (
    <circle
      className={`${colour} ${hollow ? "group-mark-hollow" : "group-mark"}`}
      cx={x}
      cy={y}
      r={kind === "work" ? 4 : 8}
    />
  );
}

function titleOf({ agent, kind, timestamp }: GroupTurn): string {
  return `${visibleText(agent ?? "People")}${kind === "said" ? "" : ` (${kind})`}, ${fullTime(timestamp)}`;
}
