import { HttpAgent, type Message, type ResumeEntry } from "@ag-ui/client";

// The thread is the hash of the URL, `#<id>`; a click on the state increments it.
const agent = new HttpAgent({ url: "/agui/talker", threadId: location.hash.slice(1) });
const one = <Name extends keyof HTMLElementTagNameMap>(name: Name): HTMLElementTagNameMap[Name] =>
  document.querySelector(name) as HTMLElementTagNameMap[Name];

function lineOf(message: Message): string {
  const calls = message.role === "assistant" ? (message.toolCalls ?? []) : [];
  return `${message.content ?? ""}${calls.map(({ function: { name } }) => `[${name}]`).join("")}`;
}

function show(): void {
  one("ul").replaceChildren(
    ...agent.messages.map((message) => {
      const item = document.createElement("li");
      item.textContent = `${message.role}: ${lineOf(message)}`;
      return item;
    }),
  );
  one("pre").textContent = JSON.stringify(agent.state);
}

/** A button for each answer to an interrupt. */
function ask(): void {
  const buttons = agent.pendingInterrupts.flatMap(({ id: interruptId, message, metadata }) =>
    [true, false].map((approved) => {
      const button = document.createElement("button");
      button.textContent = `${approved ? "Approve" : "Deny"}: ${message} ${JSON.stringify(metadata?.arguments)}`;
      button.onclick = () => run([{ interruptId, status: "resolved", payload: { approved } }]);
      return button;
    }),
  );
  one("div").replaceChildren(...buttons);
}

async function run(resume?: ResumeEntry[]): Promise<void> {
  one("output").textContent = "running";
  one("div").replaceChildren();
  await agent.runAgent(resume === undefined ? {} : { resume }).catch((error: unknown) => {
    one("div").textContent = String(error);
  });
  show();
  ask();
  one("output").textContent = "ready";
}

agent.subscribe({ onMessagesChanged: show, onStateChanged: show });
one("pre").onclick = () => agent.setState({ count: Number(agent.state.count ?? 0) + 1 });
one("form").onsubmit = (event) => {
  event.preventDefault();
  agent.addMessage({ id: crypto.randomUUID(), role: "user", content: one("input").value });
  one("input").value = "";
  void run();
};
// Without a message it joins: it gets the transcript, and the answer that is streaming.
await run();
