//! Refusals, with the numbers that the server gives them.

/// Why a command was refused. The HTTP status is the code itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) code: u16,
    /// `cserrorcode`; some replies have none.
    pub(crate) exception: Option<u32>,
    pub(crate) text: String,
    /// The reply is wrapped as `errorresponse`, not by the command's name.
    pub(crate) nameless: bool,
    /// `uuidList`: what the text is about and which parameter named it.
    pub(crate) about: Option<(String, &'static str)>,
}

impl ApiError {
    pub(crate) fn new(code: u16, exception: u32, text: impl Into<String>) -> Self {
        Self { code, exception: Some(exception), text: text.into(), nameless: false, about: None }
    }

    /// The layer that reads parameters refuses: 431/9999.
    pub(crate) fn parameter(text: impl Into<String>) -> Self {
        Self::new(431, 9999, text)
    }

    /// The command refuses a value: 431/4350.
    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self::new(431, 4350, text)
    }

    /// Not the caller's: 531/4365.
    pub(crate) fn denied(text: impl Into<String>) -> Self {
        Self::new(531, 4365, text)
    }

    /// Not the caller's, in the words that most commands use.
    pub(crate) fn not_yours() -> Self {
        Self::denied("Caller does not have permission to operate with provided resource.")
    }

    /// 530/4250 with its cause.
    pub(crate) fn runtime(text: impl Into<String>) -> Self {
        Self::new(530, 4250, text)
    }

    /// 530 as ordinary users see it: without a cause.
    pub(crate) fn internal(exception: u32) -> Self {
        Self::new(
            530,
            exception,
            "Internal error executing command, please contact your system administrator",
        )
    }

    /// A rule is in the way of another.
    pub(crate) fn conflict(exception: u32, text: impl Into<String>) -> Self {
        Self::new(537, exception, text)
    }

    /// The role lacks the command, or there is none of that name.
    pub(crate) fn unavailable(text: impl Into<String>) -> Self {
        Self { nameless: true, ..Self::new(432, 9999, text) }
    }

    /// The caller is nobody.
    pub(crate) fn unauthorized() -> Self {
        Self {
            code: 401,
            exception: None,
            text: "unable to verify user credentials and/or request signature".to_owned(),
            nameless: false,
            about: None,
        }
    }

    /// The same with what it is about.
    pub(crate) fn about(mut self, uuid: &str, parameter: &'static str) -> Self {
        self.about = Some((uuid.to_owned(), parameter));
        self
    }

    /// The same, raised again by a command: only the class is lost.
    pub(crate) fn wrapped(mut self) -> Self {
        self.exception = Some(9999);
        self
    }
}

pub(crate) type Result<T> = std::result::Result<T, ApiError>;
