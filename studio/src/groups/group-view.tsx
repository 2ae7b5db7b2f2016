import type { ReactNode } from "react";
import type { Catalogue } from "skein/client";
import type { Entry } from "../../../src/session/log/entry.ts";
import { Shown } from "../request/shown.tsx";
import { useClient } from "../request/use-client.ts";
import { useRevised } from "../request/use-revised.ts";
import type { SessionProps } from "../session/session-props.ts";
import { AgentSightList } from "./agent-sight-list.tsx";
import { GroupRun } from "./group-run.tsx";
import { GroupTimeline } from "./group-timeline.tsx";
import { groupTurnOf } from "./group-turn.ts";
import { GroupTurnList } from "./group-turn-list.tsx";
import { SeeAsPicker } from "./see-as-picker.tsx";
import { SpeakerTable } from "./speaker-table.tsx";
import { rolesOf, speakersOf } from "./speakers.ts";
import "./groups.css";

/** As much of a path as the server gives at once. */
const ENTRIES_MAX = 1000;

/** Who spoke in a session of several agents. */
export function GroupView(props: SessionProps): ReactNode {
  const { session, live } = props;
  const client = useClient();
  const { id } = session.header;
  const requested = useRevised(id, live.revision, async (signal) => {
    const [path, catalogue] = await Promise.all([
      client.sessions.path(id, { limit: ENTRIES_MAX }, { signal }),
      client.catalogue({ signal }),
    ]);
    return { entries: path.items, cut: path.next !== null, catalogue };
  });
  return (
    <section className="group" aria-label="Group">
      <Shown requested={requested} what="who spoke">
        {(data) => <Group {...props} {...data} />}
      </Shown>
    </section>
  );
}

function Group({
  session,
  live,
  options,
  entries,
  cut,
  catalogue: { groups },
}: SessionProps & {
  readonly entries: readonly Entry[];
  readonly cut: boolean;
  readonly catalogue: Catalogue;
}): ReactNode {
  const turns = entries.map(groupTurnOf).filter((turn) => turn !== null);
  const speakers = speakersOf(turns, groups);
  const spoke = speakers.flatMap(({ agent }) => (agent === null ? [] : [agent]));
  const agents = [...new Set([...spoke, ...(spoke.length === 0 ? [] : rolesOf(spoke, groups).keys())])];
  const as = options.as ?? null;
  return (
    <>
      {spoke.length === 0 ? (
        <div className="group-none">
          <h2>No agents have spoken here by name</h2>
          <p className="soft">
            A group lets several agents answer in one session, one after the other: who spoke, in which role, and who
            could see it is shown here.{" "}
            {groups.length === 0
              ? "This server has no groups to start; it is given them when it is created."
              : "Start one of the server's groups below."}
          </p>
        </div>
      ) : (
        <>
          {cut && <p className="small soft">Counted are the last {ENTRIES_MAX.toLocaleString("en")} entries.</p>}
          <SpeakerTable speakers={speakers} />
          <GroupTimeline turns={turns} speakers={speakers} sessionId={session.header.id} />
        </>
      )}
      {spoke.length > 0 && (
        <>
          <SeeAsPicker sessionId={session.header.id} agents={agents} as={as} />
          {as === null ? (
            <GroupTurnList turns={turns} speakers={speakers} />
          ) : (
            <AgentSightList
              key={as}
              agent={as}
              entries={entries}
              undone={session.undone}
              speakers={speakers}
              turns={turns}
            />
          )}
        </>
      )}
      {(groups.length > 0 || session.running !== null) && (
        <GroupRun session={session} groups={groups} onChange={live.reload} />
      )}
    </>
  );
}
