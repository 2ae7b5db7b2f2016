import { createServer } from "node:http";
import { LLMock } from "@copilotkit/aimock";

/** @typedef {import("@copilotkit/aimock").ChatCompletionRequest} Request */

/**
 * A mock model server on this machine with the APIs of OpenAI and Anthropic, which records the
 * requests.
 * @typedef {object} StandIn
 * @property {string} url
 * @property {{ path: string, body: string }[]} asked every request that carried a body, oldest first
 * @property {() => Promise<void>} close
 */

/**
 * The arguments of each program's own tool for commands, by the tool's name.
 * @type {Readonly<Record<string, (command: string) => object>>}
 */
const commandTools = {
  Bash: (command) => ({ command, description: "Read the notes" }),
  bash: (command) => ({ command, description: "Read the notes" }),
  exec_command: (command) => ({ cmd: command }),
};

/** The task of a sub-agent. */
export const helper = { description: "Look for the kettle", prompt: "Read the notes." };

/**
 * The kind of sub-agent that each program has, by the name of the tool that starts one.
 * @type {Readonly<Record<string, string>>}
 */
const helperTools = { Agent: "general-purpose", task: "general" };

const usage = { prompt_tokens: 120, completion_tokens: 12, total_tokens: 132, input_tokens: 120, output_tokens: 12 };

/**
 * Starts a mock server. It calls the program's tool for commands when it is asked to look into the notes, and answers with
 * the text of the notes after it has read them.
 * @returns {Promise<StandIn>}
 */
export async function openStandIn() {
  const mock = new LLMock({ host: "127.0.0.1", port: 0, logLevel: "silent" });
  mock.addFixture({ match: { predicate: () => true }, response: answerTo });
  await mock.start();
  /** @type {StandIn["asked"]} */
  const asked = [];
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString("utf8");
    if (body !== "") asked.push({ path: request.url ?? "", body });
    try {
      const answer = await fetch(`${mock.url}${request.url}`, {
        method: request.method ?? "GET",
        headers: { "content-type": "application/json", authorization: "Bearer none", "x-api-key": "none" },
        ...(body === "" ? {} : { body: withoutNamespaces(body) }),
      });
      response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
      response.end(withNamespace(await answer.text()));
    } catch {
      response.destroy();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(null)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await mock.stop();
    },
  };
}

const sessionsTool = "search_sessions";

/**
 * Codex lists the tools of an MCP server in a namespace, which the mock server does not know.
 * @param {string} body
 */
function withoutNamespaces(body) {
  if (!body.includes('"type":"namespace"')) return body;
  const { tools, ...rest } = JSON.parse(body);
  const flat = tools.flatMap((/** @type {{ type: string, name: string, tools: { name: string }[] }} */ tool) =>
    tool.type === "namespace" ? tool.tools.map((inner) => ({ ...inner, name: `${tool.name}__${inner.name}` })) : [tool],
  );
  return JSON.stringify({ ...rest, tools: flat });
}

/** @param {string} answer */
function withNamespace(answer) {
  if (!answer.includes('"type":"response.')) return answer;
  return answer.replaceAll(`"name":"mcp__skein__${sessionsTool}"`, `"namespace":"mcp__skein","name":"${sessionsTool}"`);
}

/**
 * The model's response to a question about earlier sessions: a call of the search tool, after a tool search if the program hides that tool.
 * @param {Request} request
 * @returns {import("@copilotkit/aimock").FixtureResponse | null}
 */
function searchFor({ messages, tools = [] }) {
  const asked = messages.findLastIndex(({ content }) => wordsOf(content).includes("Ask earlier sessions"));
  const since = JSON.stringify(messages.slice(asked));
  if (asked < 0 || since.includes("call_search")) return null;
  const names = tools.map((tool) => tool.function.name);
  const search = names.find((name) => name.endsWith(sessionsTool));
  if (search !== undefined) {
    const found = JSON.stringify({ words: '"blue kettle" shed' });
    return { toolCalls: [{ id: "call_search", name: search, arguments: found }], usage };
  }
  if (!names.includes("ToolSearch") || since.includes("call_tool")) return null;
  const query = JSON.stringify({ query: `select:mcp__skein__${sessionsTool}`, max_results: 5 });
  return { toolCalls: [{ id: "call_tool", name: "ToolSearch", arguments: query }], usage };
}

/**
 * @param {Request} request
 * @returns {import("@copilotkit/aimock").FixtureResponse}
 */
function answerTo(request) {
  const { messages, tools = [] } = request;
  const search = searchFor(request);
  if (search !== null) return search;
  const last = messages.at(-1);
  const text = wordsOf(last?.content);
  if (last?.role === "tool") return { content: "The notes say: the blue kettle is in the shed.", usage };
  const names = tools.map((tool) => tool.function.name);
  const command = names.find((name) => Object.hasOwn(commandTools, name));
  if (command !== undefined && text.includes("Look into notes.txt"))
    return {
      ...callsOf(command, ["cat notes.txt"]),
      reasoning: "The kettle may be in the notes, so I read them.",
      usage,
    };
  if (command !== undefined && text.includes("Look into both files"))
    return { ...callsOf(command, ["cat notes.txt", "cat more.txt"]), usage };
  const helperTool = names.find((name) => Object.hasOwn(helperTools, name));
  if (helperTool !== undefined && text.includes("Let a helper look")) {
    const asked = JSON.stringify({ ...helper, subagent_type: helperTools[helperTool] });
    return { toolCalls: [{ id: "call_helper", name: helperTool, arguments: asked }], usage };
  }
  return { content: "Understood, I keep that in mind.", usage };
}

/**
 * @param {string} tool
 * @param {readonly string[]} commands
 */
function callsOf(tool, commands) {
  return {
    toolCalls: commands.map((command, index) => ({
      id: `call_${commands.length}_${index + 1}`,
      name: tool,
      arguments: JSON.stringify(commandTools[tool]?.(command)),
    })),
  };
}

/** @param {Request["messages"][number]["content"] | undefined} content */
function wordsOf(content) {
  if (typeof content === "string") return content;
  return (content ?? []).map((part) => part.text ?? "").join("\n");
}
