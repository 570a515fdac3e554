/** What a tool does to what, as far as its name or its title says, and which doings are easily taken for one another. */

import type { SideEffect } from "../api.js";

/** What is done, and to what; both as keys, not for showing. */
export interface Act {
  readonly verb: string;
  readonly object: string;
}

/** In each line every verb of one side is the opposite of every verb of another, or a different end of the same thing. */
const OPPOSITES = `
close archive finish complete finalize cancel void | delete remove destroy purge erase drop wipe trash
open reopen | close
create add new insert register make generate | delete remove destroy purge erase drop wipe unregister deregister
update edit modify patch set replace overwrite | delete remove clear reset
get read | write set overwrite
enable activate | disable deactivate
start launch boot begin resume | stop terminate kill halt shutdown end pause suspend
suspend freeze | delete remove terminate
restart reboot reset | stop terminate shutdown
lock | unlock
block ban mute | unblock unban unmute
follow subscribe watch star join | unfollow unsubscribe unwatch unstar leave
publish release deploy | unpublish withdraw rollback undeploy retract
approve accept confirm allow grant | reject decline deny refuse revoke disallow
assign attach link bind pair associate connect mount | unassign detach unlink unbind unpair dissociate disconnect unmount
install | uninstall remove
upload import push send | download export pull receive
encrypt encode compress pack zip | decrypt decode decompress unpack unzip extract
login signin logon | logout signout logoff
checkin | checkout
turnon switchon | turnoff switchoff
show unhide | hide
increase raise increment | decrease lower reduce decrement
deposit credit | withdraw debit
pay charge capture | refund void
buy | sell
backup save | restore delete
restore recover undelete unarchive | delete purge archive
commit | rollback revert
undo | redo
merge | split close
book reserve schedule | cancel unbook unschedule
borrow | return
`;
/** Verbs that are easily taken for none of the others, but say what is done. */
const PLAIN = "list find search query describe view fetch check count validate verify rename move copy clone export import";

/** These may destroy, where nobody says whether they do. */
const DESTROYING = new Set("delete remove destroy purge erase drop wipe trash void terminate kill uninstall overwrite reset clear 删除 移除 清空 销毁 作废 卸载 终止 清除 解散 注销".split(" "));

/** Chinese verbs as they begin or end a title. */
const CHINESE = `
关闭 归档 完成 取消 结束 停用 | 删除 移除 清空 销毁 作废 清除
打开 开启 重新打开 重开 | 关闭
创建 新建 新增 添加 增加 生成 插入 | 删除 移除 清空 销毁 作废 减少 解散
更新 修改 编辑 设置 替换 覆盖 | 删除 移除 清空 重置
读取 获取 | 写入 设置 覆盖
启用 激活 | 禁用 停用 注销
启动 开始 运行 恢复 继续 | 停止 终止 暂停 关闭 结束
锁定 冻结 | 解锁 解冻
拉黑 屏蔽 禁言 | 解除屏蔽 取消屏蔽 解除禁言
关注 订阅 加入 收藏 | 取消关注 退订 取消订阅 退出 取消收藏
发布 上架 上线 | 下架 撤回 下线 撤销发布
批准 通过 同意 接受 授权 | 拒绝 驳回 撤销 取消授权
绑定 关联 分配 连接 | 解绑 解除关联 取消分配 断开
安装 | 卸载
上传 导入 发送 | 下载 导出 接收
加密 压缩 | 解密 解压
登录 签到 | 登出 退出登录 签退
显示 | 隐藏
存入 充值 | 取出 提现
支付 付款 | 退款 退回
购买 | 出售 退订
备份 保存 | 恢复 还原 删除
预订 预约 | 取消 取消预订 取消预约
`;
const CHINESE_PLAIN = "查询 查看 搜索 列出 检查 统计 移动 复制 重命名";

/** Per verb its opposites, in the order of the lines. */
const opposites = new Map<string, Set<string>>();
const known = new Set<string>([...words(PLAIN), ...words(CHINESE_PLAIN)]);
for (const line of `${OPPOSITES}\n${CHINESE}`.split("\n")) {
  const sides = line.split("|").map(words);
  for (const [i, side] of sides.entries())
    for (const verb of side) {
      known.add(verb);
      const others = opposites.get(verb) ?? new Set();
      opposites.set(verb, others);
      for (const other of sides.flatMap((one, j) => (j === i ? [] : one))) if (other !== verb) others.add(other);
    }
}
/** The longest first: 取消订阅 is more than 取消. */
const chineseVerbs = [...known].filter((verb) => /\p{Script=Han}/u.test(verb)).sort((a, b) => b.length - a.length || (a < b ? -1 : 1));

export function areOpposite(one: string, other: string): boolean {
  return opposites.get(one)?.has(other) === true;
}

/** By what the annotations say; where they say nothing, by the name, or a Chinese title. */
export function isDestructive(effect: SideEffect, name: string, title: string): boolean {
  if (effect !== "unknown") return effect === "destructive";
  const act = actOfName(name) ?? actOfTitle(title);
  return act !== undefined && DESTROYING.has(act.verb);
}

const PIECE = /[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+/g;
/** Versions and small words, which tell no objects apart. */
const NOTHING = /^(?:v|\d+|a|an|the|of|to|by|for|from|with|and|my)$/;
const PARTICLE = /^(?:on|off|in|out|up|down)$/;

/** Undefined where a name says no verb, or nothing beside it. */
export function actOfName(name: string): Act | undefined {
  const pieces = (name.match(PIECE) ?? []).map((piece) => piece.toLowerCase());
  const at = pieces.findIndex((piece, i) => known.has(piece) || known.has(piece + (pieces[i + 1] ?? "")));
  if (at < 0) return undefined;
  const [first = "", next = ""] = pieces.slice(at);
  // turn_on, check_out: the small word is half of the verb.
  const joined = PARTICLE.test(next) && known.has(first + next);
  if (!joined && !known.has(first)) return undefined;
  const rest = [...pieces.slice(0, at), ...pieces.slice(at + (joined ? 2 : 1))];
  const object = rest.filter((piece) => !NOTHING.test(piece)).map(singular).join(" ");
  return object === "" ? undefined : { verb: joined ? first + next : first, object };
}

/** Signs between a verb and what it is done to. */
const BETWEEN = /^[\s的了一个:：、-]+|[\s的了:：、-]+$/g;
const LONGEST = 60;

/** Undefined where a title is not Chinese, or says no verb, or nothing beside it. */
export function actOfTitle(title: string): Act | undefined {
  const text = title.trim();
  if (text.length > LONGEST || !/\p{Script=Han}/u.test(text)) return undefined;
  for (const verb of chineseVerbs) {
    const rest = text.startsWith(verb) ? text.slice(verb.length) : text.endsWith(verb) ? text.slice(0, -verb.length) : undefined;
    const object = rest?.replace(BETWEEN, "") ?? "";
    if (object !== "") return { verb, object };
  }
  return undefined;
}

function singular(word: string): string {
  if (word.length > 4 && word.endsWith("ies")) return `${word.slice(0, -3)}y`;
  return word.length > 3 && /[^sui]s$/.test(word) ? word.slice(0, -1) : word;
}

function words(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== "");
}
