import type { ReactNode } from "react";
import type { Catalogue } from "skein/client";
import type { Entry } from "../../../src/session/log/entry.ts";
import { RequestBoundary } from "../request/request-boundary.tsx";
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

/** The maximum number of entries of a path that the server returns at a time. */
const ENTRIES_MAX = 1000;

/** The speakers and turns of a session with several agents. */
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
      <RequestBoundary requested={requested} what="the speakers">
        {(data) => <Group {...props} {...data} />}
      </RequestBoundary>
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
          <h2>No named agents have answered here</h2>
          <p className="soft">
            In a group, several agents answer in one session, one after the other. This page shows who spoke, in which
            role, and who could see it.{" "}
            {groups.length === 0
              ? "This server has no groups; configure them when you create it."
              : "Start one of the server's groups below."}
          </p>
        </div>
      ) : (
        <>
          {cut && <p className="small soft">Only the last {ENTRIES_MAX.toLocaleString("en")} entries are counted.</p>}
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
