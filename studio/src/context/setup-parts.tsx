import { type ReactNode, useState } from "react";
import type { ContextView, SessionView } from "skein/client";
import { LongText } from "../markdown/long-text.tsx";
import { visibleText } from "../markdown/visible-text.ts";
import { useClient } from "../request/use-client.ts";
import { useRequest } from "../request/use-request.ts";
import { estimateTokens, type ReadSetup, readSetups } from "./read-setups.ts";

const LINE_CHARACTERS = 300;

/** Shows the recorded instructions and tools of each agent, which precede the messages of a request. */
export function SetupParts({
  session,
  context,
}: {
  readonly session: SessionView;
  readonly context: ContextView;
}): ReactNode {
  const client = useClient();
  const { id } = session.header;
  const { setups } = session.path.settings;
  const { data } = useRequest(`${id} ${JSON.stringify(setups)}`, (signal) => readSetups(client, id, setups, signal));
  if (data === null) return null;
  return (
    <section aria-label="Instructions and tools">
      <ol className="context-parts context-setups">
        {data.length === 0 && <Unrecorded systemPrompt={context.systemPrompt} />}
        {data.map((setup) => (
          <SetupOf key={setup.agent} setup={setup} alone={data.length === 1} />
        ))}
      </ol>
    </section>
  );
}

function Unrecorded({ systemPrompt }: { readonly systemPrompt: string | null }): ReactNode {
  if (systemPrompt !== null) {
    return (
      <SetupPart name="Instructions" about="of the session" text={systemPrompt}>
        <LongText text={systemPrompt} />
      </SetupPart>
    );
  }
  return (
    <li className="context-unrecorded small soft">
      The instructions and tools of the requests are not recorded here: the next run sends those of its agent.
    </li>
  );
}

function SetupOf({ setup, alone }: { readonly setup: ReadSetup; readonly alone: boolean }): ReactNode {
  const { agent, instructions, instructionsDigest, tools = [], output } = setup;
  const about = alone ? agent : `of ${agent}`;
  const facts = factsOf(setup);
  return (
    <>
      {instructions !== undefined ? (
        <SetupPart name="Instructions" about={about} text={instructions}>
          <LongText text={instructions} />
        </SetupPart>
      ) : (
        <li className="context-unrecorded small soft">
          {instructionsDigest === undefined
            ? `${visibleText(agent)} has no instructions.`
            : `Of the instructions of ${visibleText(agent)}, only a digest is recorded: ${instructionsDigest.slice(0, 16)}…`}
        </li>
      )}
      {tools.length > 0 && (
        <SetupPart
          name={tools.length === 1 ? "1 tool" : `${tools.length} tools`}
          about={about}
          text={tools.map(({ name }) => name).join(", ")}
          tokens={estimateTokens(JSON.stringify(tools))}
        >
          <ul className="context-tools">
            {tools.map((tool) => (
              <li key={tool.name}>
                <details>
                  <summary>
                    <code>{visibleText(tool.name)}</code> <span className="soft">{visibleText(tool.description)}</span>
                  </summary>
                  <LongText text={JSON.stringify(tool.parameters, null, 2)} first={4000} />
                </details>
              </li>
            ))}
          </ul>
        </SetupPart>
      )}
      {output !== undefined && (
        <SetupPart name="Form of the answer" about={about} text={JSON.stringify(output)}>
          <LongText text={JSON.stringify(output, null, 2)} />
        </SetupPart>
      )}
      {facts.length > 0 && <li className="context-unrecorded small soft">{facts.join(" · ")}</li>}
    </>
  );
}

/** The other recorded options of the requests, in words. */
function factsOf({ toolChoice, maxOutputTokens, temperature, stop, transformed }: ReadSetup): readonly string[] {
  const choice = typeof toolChoice === "object" ? `the tool ${toolChoice.name}` : toolChoice;
  return [
    ...(choice === undefined || choice === "auto" ? [] : [`Tool choice: ${visibleText(choice)}`]),
    ...(maxOutputTokens === undefined ? [] : [`at most ${maxOutputTokens.toLocaleString("en")} tokens of output`]),
    ...(temperature === undefined ? [] : [`temperature ${temperature}`]),
    ...(stop === undefined || stop.length === 0 ? [] : [`stops at ${visibleText(stop.join(", "))}`]),
    ...(transformed === true ? ["the program changes the messages of each request"] : []),
  ];
}

function SetupPart({
  name,
  about,
  text,
  tokens = estimateTokens(text),
  children,
}: {
  readonly name: string;
  readonly about: string;
  readonly text: string;
  readonly tokens?: number;
  readonly children: ReactNode;
}): ReactNode {
  const [open, setOpen] = useState(false);
  return (
    <li className="context-part">
      <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <span className="context-dot context-system" aria-hidden="true" />
          <span className="context-part-who">{name}</span>
          <span className="tag">{visibleText(about)}</span>
          <span className="context-part-tokens small soft" title="An estimate: a quarter of the characters">
            about {tokens.toLocaleString("en")}
            <span className="only-for-readers"> tokens</span>
          </span>
          <bdi className="context-part-line soft">{open ? "" : visibleText(text.slice(0, LINE_CHARACTERS))}</bdi>
        </summary>
        {open && <div className="context-part-text">{children}</div>}
      </details>
    </li>
  );
}
