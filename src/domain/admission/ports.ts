/** Ports on which something else than MCP listens: what browsers refuse (WHATWG Fetch, "bad port"), databases, control planes. */
const FORBIDDEN: readonly (readonly [service: string, ports: string])[] = [
  ["an old network service", "0 1 7 9 11 13 15 17 19 20 37 42 43 69 77 79 87 95 101 102 103 104 109 117 123 135 137 139"],
  ["FTP", "21 989 990"],
  ["SSH", "22 115"],
  ["telnet", "23 992"],
  ["mail", "25 110 143 465 587 993 995 4190"],
  ["DNS", "53 853"],
  ["gopher and finger", "70"],
  ["portmapper or NetBIOS", "111 113"],
  ["news", "119 532 563"],
  ["directory or file services", "161 179 389 427 445 512 513 514 515 526 530 531 540 548 554 556 601 636 873 1719 1720 1723 2049 3659 4045"],
  ["telephony", "5060 5061"],
  ["X11", "6000"],
  ["chat", "6566 6665 6666 6667 6668 6669 6679 6697 10080"],
  ["Docker", "2375 2376 2377"],
  ["etcd", "2379 2380"],
  ["kubelet", "10250 10255"],
  ["Redis", "6379 6380 16379 26379"],
  ["memcached", "11211"],
  ["a database", "1433 1434 1521 3050 3306 5432 5433 5984 7199 7687 9042 9200 9300 27017 27018 27019 28015"],
  ["ZooKeeper or Kafka", "2181 2888 9092"],
  ["AMQP", "5671 5672"],
];

const SERVICE_OF: ReadonlyMap<number, string> = new Map(
  FORBIDDEN.flatMap(([service, ports]) => ports.split(" ").map((port) => [Number(port), service] as const)),
);

/** What usually listens on a port that is never dialled; undefined = it may be. */
export function forbiddenPort(port: number): string | undefined {
  return SERVICE_OF.get(port);
}
