// Asking the server. What it refuses becomes an ApiError with its own message.

const TOKEN = "regard-token";

/** A refusal: what the server says, and the status. */
export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.name = "ApiError";
    this.status = status;
  }
}

/** GET a path; resolves to the parsed answer. */
export async function get(path, { signal } = {}) {
  return ask(path, { signal });
}

/** POST a body as JSON; resolves to the parsed answer. */
export async function post(path, body, { signal } = {}) {
  return ask(path, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json" },
    signal,
  });
}

/**
 * POST a body and read the results one by one, as the server sends them: `onResult` gets each, `onProgress` how many of
 * how many are there. Resolves when all are.
 */
export async function stream(path, body, { signal, onResult = () => {}, onProgress = () => {} } = {}) {
  const headers = { "content-type": "application/json", accept: "text/event-stream" };
  const answer = await request(path, { method: "POST", body: JSON.stringify(body), headers, signal });
  if (!answer.ok) await parsed(answer);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let [text, isDone] = ["", false];
  for (;;) {
    const { value, done } = await reader.read().catch(unreachable);
    if (done) break;
    const events = (text + value).split("\n\n");
    text = events.pop();
    for (const [name, data] of events.map(event)) {
      if (name === "error") throw new ApiError(data.message, answer.status);
      if (name === "result") onResult(data.result, data.number);
      if (name === "progress") onProgress(data.done, data.of);
      if (name === "done") isDone = true;
    }
  }
  if (!isDone) unreachable(new Error("The stream ended early."));
}

/** One event of a stream: its name and its data. */
function event(text) {
  const lines = Object.fromEntries(text.split("\n").map((line) => line.split(/: (.*)/s)));
  return [lines.event, JSON.parse(lines.data)];
}

/** The token that requests carry, for this tab; "" for none. */
export function token() {
  return sessionStorage.getItem(TOKEN) ?? "";
}

export function setToken(value) {
  sessionStorage.setItem(TOKEN, value);
}

/** Whether an error only says that an answer is no longer wanted. */
export function isAborted(error) {
  return error?.name === "AbortError";
}

async function ask(path, options) {
  return parsed(await request(path, options));
}

/** The answer of the server, whatever its status. */
async function request(path, options) {
  const headers = { ...options.headers, ...(token() ? { authorization: `Bearer ${token()}` } : {}) };
  return fetch(path, { ...options, headers }).catch(unreachable);
}

/** What an answer holds; a refusal is an ApiError. */
async function parsed(answer) {
  const json = await answer.json().catch((error) => {
    if (isAborted(error)) throw error;
    return null;
  });
  if (answer.ok && json !== null) return json;
  if (answer.status === 401) {
    document.dispatchEvent(new CustomEvent("regard-token-needed"));
    // The server's own message explains the Authorization header, which people in a browser do not set.
    throw new ApiError(token() ? "This token is wrong." : "Enter the token of this server.", answer.status);
  }
  const message = json?.error?.message ?? `The server answered with status ${answer.status} and no explanation.`;
  throw new ApiError(message, answer.status);
}

function unreachable(error) {
  if (isAborted(error)) throw error;
  throw new ApiError("The server does not answer. Is `regard serve` still running?", 0);
}
