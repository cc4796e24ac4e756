// Shows the title and the todos of a session as they are now, and changes them. Nothing is folded here: the host does that, and the page draws what it says.
import { Client } from "@foldhost/client";

// ?session=…&server=…, and #token=…, which stays in the browser.
const asked = new URLSearchParams(location.search);
const id = asked.get("session") ?? "first";
const client = new Client({
  url: asked.get("server") ?? "http://127.0.0.1:7420",
  token: new URLSearchParams(location.hash.slice(1)).get("token") ?? undefined,
});

const at = (name) => document.getElementById(name);
at("session").textContent = `session ${id}`;

const complain = (err) => {
  at("error").textContent = err?.message ?? "";
  at("error").hidden = !err;
};

// A session that is there already is as good as one that is made.
await client.create({ id }).catch(complain);

const tracked = client.track(id, { keys: ["title", "todos"] });
const { store } = tracked;

const drawState = () => {
  at("state").textContent = tracked.state;
  at("state").dataset.state = tracked.state;
  complain(tracked.error);
};
tracked.onState(drawState);
drawState();

const drawTitle = () => {
  if (document.activeElement !== at("title")) at("title").value = store.value("title") ?? "";
  document.title = store.value("title") ?? "A session";
};
store.subscribe("title", drawTitle);

const drawTodos = () => {
  at("todos").dataset.stale = String(store.get("todos")?.stale ?? false);
  at("todos").replaceChildren(...todos().map(drawTodo));
};
store.subscribe("todos", drawTodos);

const todos = () => store.value("todos") ?? [];

// Whatever others write meanwhile, a list is written as a whole: the tool checks it, and appends one event.
const write = async (list) => {
  try {
    const said = await client.callTool(id, "todo_write", { todos: list });
    complain(said.isError ? new Error(said.content[0].text) : undefined);
  } catch (err) {
    complain(err);
  }
  drawTodos();
};

function drawTodo({ content, status }) {
  const box = document.createElement("input");
  box.type = "checkbox";
  box.checked = status === "completed";
  box.onchange = () => write(todos().map((t) => (t.content === content ? { content, status: box.checked ? "completed" : "pending" } : t)));
  const text = document.createElement("span");
  text.textContent = content;
  const label = document.createElement("label");
  label.append(box, text);
  const item = document.createElement("li");
  item.dataset.status = status;
  item.append(label);
  return item;
}

at("add").onsubmit = (e) => {
  e.preventDefault();
  write([...todos(), { content: at("todo").value, status: "pending" }]);
  at("add").reset();
};

at("rename").onsubmit = (e) => {
  e.preventDefault();
  const title = at("title").value.trim();
  if (title !== "") client.append(id, { type: "session/title", data: { title } }).catch(complain);
  at("title").blur();
  drawTitle();
};
