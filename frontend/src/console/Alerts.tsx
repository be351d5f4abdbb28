// Open alerts: what needs somebody now. Acknowledging says "I look after this", to everybody.

import { useCallback, useEffect, useState } from "preact/hooks";
import { type StaffApi, StaffApiError } from "./api";
import type { StaffConfig } from "./config";
import { moment, sentence } from "./format";
import type { Alert } from "./turns";

const LOOK_EVERY_MS = 15_000;

interface AlertsProps {
  readonly api: StaffApi;
  readonly config: StaffConfig;
  /** Only the alerts of this conversation; "" = all. */
  readonly conversation: string;
  /** A new value makes it look again at once. */
  readonly pulse?: number;
}

export function Alerts({ api, config, conversation, pulse = 0 }: AlertsProps) {
  const [alerts, setAlerts] = useState<readonly Alert[]>([]);
  const [problem, setProblem] = useState("");
  const look = useCallback(async () => {
    try {
      setAlerts(await api.alerts());
      setProblem("");
    } catch (error) {
      setProblem(error instanceof StaffApiError ? error.sentence : "The alerts could not be read.");
    }
  }, [api]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `pulse` makes it look again
  useEffect(() => {
    void look();
    const timer = window.setInterval(look, LOOK_EVERY_MS);
    return () => window.clearInterval(timer);
  }, [look, pulse]);
  const acknowledge = async (id: string) => {
    try {
      await api.acknowledge(id);
    } catch (error) {
      setProblem(error instanceof StaffApiError ? error.sentence : "That could not be saved.");
    }
    await look();
  };
  const open = alerts.filter(
    (alert) => alert.acknowledgedAt === null && (conversation === "" || alert.conversation === conversation),
  );
  if (open.length === 0 && problem === "") return null;
  return (
    <section class="alerts" aria-label="Open alerts">
      <h2>{open.length === 1 ? "1 open alert" : `${open.length} open alerts`}</h2>
      {problem !== "" && <p class="problem">{problem}</p>}
      <ul>
        {open.map((alert) => (
          <li key={alert.id}>
            <span class="alert-what">
              <strong>{sentence(alert.kind)}</strong>
              <time class="quiet" dateTime={alert.raisedAt}>
                {moment(alert.raisedAt)}
              </time>
            </span>
            {alert.conversation !== null && conversation === "" && (
              <a class="button" href={`${config.transcriptPath}${alert.conversation}/`}>
                Open the conversation
              </a>
            )}
            <button type="button" class="button strong" onClick={() => acknowledge(alert.id)}>
              I look after this
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
