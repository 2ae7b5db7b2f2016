import type { ReactNode } from "react";
import type { Catalogue } from "skein/client";
import { FIRST_AGENT, type RunChoice } from "./run-choice.ts";

/** Chooses the agent or group, and the model. */
export function Pickers({
  catalogue,
  choice,
  onChoice,
}: {
  readonly catalogue: Catalogue;
  readonly choice: RunChoice;
  readonly onChoice: (choice: RunChoice) => void;
}): ReactNode {
  const { agents, groups, models } = catalogue;
  const agent = agents.find(({ name }) => name === choice.agent) ?? agents[0];
  const value = choice.group !== null ? `group:${choice.group}` : `agent:${agent?.name ?? ""}`;
  const pick = (picked: string): void => {
    const name = picked.slice(6);
    onChoice(picked.startsWith("group:") ? { ...FIRST_AGENT, group: name } : { ...choice, agent: name, group: null });
  };
  return (
    <>
      <select
        className="field run-picker"
        aria-label="Agent"
        value={value}
        onChange={(event) => pick(event.target.value)}
      >
        {agents.map(({ name }) => (
          <option key={name} value={`agent:${name}`}>
            {name}
          </option>
        ))}
        {groups.map(({ name }) => (
          <option key={name} value={`group:${name}`}>
            {name} (group)
          </option>
        ))}
      </select>
      <select
        className="field run-picker"
        aria-label="Model"
        disabled={choice.group !== null}
        value={choice.model ?? ""}
        onChange={(event) => onChoice({ ...choice, model: event.target.value === "" ? null : event.target.value })}
      >
        <option value="">
          {choice.group === null ? `agent's model (${agent?.model ?? "?"})` : "each agent's model"}
        </option>
        {models.map(({ id }) => (
          <option key={id} value={id}>
            {id}
          </option>
        ))}
      </select>
    </>
  );
}
