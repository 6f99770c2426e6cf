// Generated from message_groups.mingle by `mingle gen rust`.

/// The program `message_groups.mingle` over its stores: a method for each transaction.
#[derive(::std::clone::Clone, ::std::fmt::Debug)]
#[allow(dead_code, non_snake_case, non_camel_case_types, clippy::all, clippy::pedantic)]
pub struct Database(::mingle::typed::Handle);
impl ::mingle::typed::Program for Database {
    const TEXT: &'static str = "// Message Groups: people join groups, and a post to a group reaches the inboxes of its members.\n//\n// Who belongs to a group must be the same all over the world, or two servers would deliver one post\n// to different people: groups are linearizable, and far away from most users. An inbox must only\n// keep the order of cause and effect, so that no answer comes before its question: inboxes are\n// causal, and near.\n//\n// Try `mingle explain message_groups.mingle` to see which part runs where.\n\nstore groups: linearizable;\nstore inboxes: causal;\n\nobject Group in groups {\n    key name: string;\n    /// A closed group takes no posts. Groups are open until somebody closes them.\n    closed: bool;\n    members: set<ref User>;\n}\n\nobject User in inboxes {\n    key name: string;\n    since: time;\n    /// Posts that were delivered and not shown yet.\n    unread: log<string>;\n    /// Posts that were shown.\n    read: log<string>;\n    /// The user's own list of groups, to look at without asking the distant store.\n    groups: set<ref Group>;\n}\n\n/// Makes a user known. It needs no uniqueness, so it is one write at the near store.\ntransaction create_user(name: string) -> ref User {\n    return put User { name: name, since: now() };\n}\n\n/// Adds a user to a group, and the group to the user's list.\ntransaction join_group(user: ref User, group: ref Group) {\n    group.members.insert(user);\n    user.groups.insert(group);\n}\n\n/// Delivers a post to every member of a group, and says to how many.\n///\n/// The members are read at the strong store; the deliveries happen after it has committed, at the\n/// near one. They need no answer from anybody, so they cannot fail half way.\ntransaction add_post(group: ref Group, post: string) -> int {\n    require !group.closed else \"the group is closed\" as closed;\n    var delivered = 0;\n    for member in group.members {\n        member.unread.append(post);\n        delivered += 1;\n    }\n    return delivered;\n}\n\n/// Gives the posts that were not shown yet, and marks them as shown.\n///\n/// A post that arrives at another replica meanwhile is not lost: `clear` removes what was seen here.\ntransaction check_inbox(user: ref User) -> list<string> {\n    let posts = user.unread.to_list();\n    for post in posts {\n        user.read.append(post);\n    }\n    user.unread.clear();\n    return posts;\n}\n\n/// Closes a group for posts, or opens it again.\ntransaction set_closed(group: ref Group, closed: bool) {\n    group.closed = closed;\n}\n";
    fn from_handle(handle: ::mingle::typed::Handle) -> Self {
        Self(handle)
    }
}
#[allow(dead_code, non_snake_case, non_camel_case_types, clippy::all, clippy::pedantic)]
impl Database {
    /// Opens the stores, once it is awaited: in this process, and in memory, unless a
    /// binding or a folder is given. Must be awaited on a tokio runtime, on which
    /// transactions then run.
    pub fn connect() -> ::mingle::typed::Connect<Self> {
        ::mingle::typed::Connect::new()
    }
    /// Over stores that are open.
    ///
    /// # Errors
    ///
    /// When they are open for another program.
    pub fn over(
        database: ::std::sync::Arc<::mingle::Database>,
    ) -> ::std::result::Result<Self, ::mingle::Error> {
        ::mingle::typed::Handle::new::<Self>(database).map(Self)
    }
    /// The same stores, for one client: its calls see what it has seen and written.
    pub fn with_session(&self, session: &::mingle::Session) -> Self {
        Self(self.0.with_session(session))
    }
    /// What is the same for all programs: looking at objects, recovery, warnings.
    pub fn untyped(&self) -> &::std::sync::Arc<::mingle::Database> {
        self.0.database()
    }
    /// Makes a user known. It needs no uniqueness, so it is one write at the near store.
    pub fn create_user(&self, name: &str) -> ::mingle::typed::Call<User> {
        self.0.call("create_user", [::mingle::typed::ToValue::to_value(&name)])
    }
    /// Adds a user to a group, and the group to the user's list.
    pub fn join_group(&self, user: &User, group: &Group) -> ::mingle::typed::Call<()> {
        self.0
            .call(
                "join_group",
                [
                    ::mingle::typed::ToValue::to_value(&user),
                    ::mingle::typed::ToValue::to_value(&group),
                ],
            )
    }
    /// Delivers a post to every member of a group, and says to how many.
    ///
    /// The members are read at the strong store; the deliveries happen after it has committed, at the
    /// near one. They need no answer from anybody, so they cannot fail half way.
    pub fn add_post(&self, group: &Group, post: &str) -> ::mingle::typed::Call<i64> {
        self.0
            .call(
                "add_post",
                [
                    ::mingle::typed::ToValue::to_value(&group),
                    ::mingle::typed::ToValue::to_value(&post),
                ],
            )
    }
    /// Gives the posts that were not shown yet, and marks them as shown.
    ///
    /// A post that arrives at another replica meanwhile is not lost: `clear` removes what was seen here.
    pub fn check_inbox(
        &self,
        user: &User,
    ) -> ::mingle::typed::Call<::std::vec::Vec<::std::string::String>> {
        self.0.call("check_inbox", [::mingle::typed::ToValue::to_value(&user)])
    }
    /// Closes a group for posts, or opens it again.
    pub fn set_closed(&self, group: &Group, closed: bool) -> ::mingle::typed::Call<()> {
        self.0
            .call(
                "set_closed",
                [
                    ::mingle::typed::ToValue::to_value(&group),
                    ::mingle::typed::ToValue::to_value(&closed),
                ],
            )
    }
}
/// The handle of a `Group`, whether or not that exists.
#[derive(::std::clone::Clone, ::std::fmt::Debug, ::std::cmp::PartialEq)]
#[derive(::std::cmp::Eq, ::std::cmp::PartialOrd, ::std::cmp::Ord, ::std::hash::Hash)]
#[derive(::mingle::typed::serde::Serialize, ::mingle::typed::serde::Deserialize)]
#[serde(crate = "::mingle::typed::serde", transparent)]
#[allow(dead_code, non_snake_case, non_camel_case_types, clippy::all, clippy::pedantic)]
pub struct Group(::std::string::String);
#[allow(dead_code, non_snake_case, non_camel_case_types, clippy::all, clippy::pedantic)]
impl Group {
    /// The `Group` with this key.
    pub fn new(key: impl ::std::convert::Into<::std::string::String>) -> Self {
        Self(key.into())
    }
    /// Its key.
    pub fn name(&self) -> &str {
        &self.0
    }
}
impl ::mingle::typed::ToValue for Group {
    fn to_value(&self) -> ::mingle::typed::Value {
        ::mingle::typed::handle("Group", &self.0)
    }
}
impl ::mingle::typed::FromValue for Group {
    fn from_value(value: &::mingle::typed::Value) -> ::std::option::Option<Self> {
        ::mingle::typed::key_of("Group", value).map(Self)
    }
}
/// The handle of a `User`, whether or not that exists.
#[derive(::std::clone::Clone, ::std::fmt::Debug, ::std::cmp::PartialEq)]
#[derive(::std::cmp::Eq, ::std::cmp::PartialOrd, ::std::cmp::Ord, ::std::hash::Hash)]
#[derive(::mingle::typed::serde::Serialize, ::mingle::typed::serde::Deserialize)]
#[serde(crate = "::mingle::typed::serde", transparent)]
#[allow(dead_code, non_snake_case, non_camel_case_types, clippy::all, clippy::pedantic)]
pub struct User(::std::string::String);
#[allow(dead_code, non_snake_case, non_camel_case_types, clippy::all, clippy::pedantic)]
impl User {
    /// The `User` with this key.
    pub fn new(key: impl ::std::convert::Into<::std::string::String>) -> Self {
        Self(key.into())
    }
    /// Its key.
    pub fn name(&self) -> &str {
        &self.0
    }
}
impl ::mingle::typed::ToValue for User {
    fn to_value(&self) -> ::mingle::typed::Value {
        ::mingle::typed::handle("User", &self.0)
    }
}
impl ::mingle::typed::FromValue for User {
    fn from_value(value: &::mingle::typed::Value) -> ::std::option::Option<Self> {
        ::mingle::typed::key_of("User", value).map(Self)
    }
}
